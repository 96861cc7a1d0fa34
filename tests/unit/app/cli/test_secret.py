"""``lockstep secret``: signatures from before still work, unless they must not."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from app.accounts.signing import SIGN_IN_SECRET, load_secrets
from app.cli.secret import app as secret
from app.main import create_app
from app.notifications.models import NotificationKind
from app.notifications.unsubscribe_links import UnsubscribeRequest
from app.settings import Settings
from tests.factories.accounts import signed_in_browser

WISH = UnsubscribeRequest("a" * 32, NotificationKind.reply)


@pytest.mark.parametrize(("options", "status"), [([], 200), (["--now"], 404)])
async def test_links_of_mails_outlive_new_secrets_unless_the_old_ones_have_leaked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, options: list[str], status: int
) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(settings.data_dir))
    file = settings.data_dir / "secrets" / SIGN_IN_SECRET
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        token = app.state.unsubscribe_tokens.sign(WISH)
    before = load_secrets(file)

    done = CliRunner().invoke(secret, ["rotate", *options])

    assert done.exit_code == 0, done.output
    app = create_app(settings)
    async with app.router.lifespan_context(app), await signed_in_browser(app) as client:
        assert (await client.get(f"/en/unsubscribe/{token}")).status_code == status
    assert load_secrets(file)[0] != before[0]
    assert len(load_secrets(file)) == (1 if options else 2)


def test_a_folder_that_cannot_be_written_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    (settings.data_dir / "secrets").write_text("in the way")
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(settings.data_dir))

    done = CliRunner().invoke(secret, ["rotate"])

    assert done.exit_code == 1
    assert "Cannot replace the secrets in " in done.output
    assert "Traceback" not in done.output
