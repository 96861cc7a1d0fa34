-- A database of commit 03760b7, from before the first version, with a few rows in each table.
-- Written by Connection.iterdump. Tables come in the order of their names, so references are checked afterwards.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE accounts (
    id VARCHAR(32) NOT NULL,
    learner_id VARCHAR(64) NOT NULL,
    email VARCHAR(320) NOT NULL,
    email_key VARCHAR(320) NOT NULL,
    email_confirmed_at DATETIME,
    password_hash VARCHAR(255),
    name VARCHAR(80) NOT NULL,
    handle VARCHAR(40) NOT NULL,
    role VARCHAR(16) NOT NULL,
    language VARCHAR(8) NOT NULL,
    time_zone VARCHAR(64) NOT NULL,
    public_profile BOOLEAN NOT NULL,
    mailing VARCHAR(16) NOT NULL,
    created_at DATETIME NOT NULL,
    disabled_at DATETIME,
    CONSTRAINT pk_accounts PRIMARY KEY (id),
    CONSTRAINT ck_accounts_mailing_known CHECK (mailing IN ('at_once', 'daily', 'never')),
    CONSTRAINT ck_accounts_role_known CHECK (role IN ('learner', 'instructor', 'admin')),
    CONSTRAINT uq_accounts_email_key UNIQUE (email_key),
    CONSTRAINT uq_accounts_handle UNIQUE (handle),
    CONSTRAINT uq_accounts_learner_id UNIQUE (learner_id)
);
INSERT INTO "accounts" VALUES('a1000000000000000000000000000000','visitor-ada','Ada@Example.org','ada@example.org','2026-11-20 09:05:00.000000','$argon2id$v=19$ada','Ada','ada','learner','en','Europe/Paris',1,'at_once','2026-11-20 09:00:00.000000',NULL);
INSERT INTO "accounts" VALUES('b2000000000000000000000000000000','visitor-bob','bob@example.org','bob@example.org',NULL,NULL,'Bob','bob','learner','ko','Asia/Seoul',0,'daily','2026-11-20 09:00:00.000000','2026-11-22 09:00:00.000000');
INSERT INTO "accounts" VALUES('c3000000000000000000000000000000','visitor-grace','grace@example.org','grace@example.org','2026-11-20 09:05:00.000000',NULL,'Grace O''Hara','grace','instructor','en','UTC',0,'never','2026-11-20 09:00:00.000000',NULL);
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('add_run_pruning');
CREATE TABLE attempts (
    "key" VARCHAR(120) NOT NULL,
    count INTEGER NOT NULL,
    first_at DATETIME NOT NULL,
    last_at DATETIME NOT NULL,
    CONSTRAINT pk_attempts PRIMARY KEY ("key")
);
INSERT INTO "attempts" VALUES('sign-in address 192.0.2.0/24',3,'2026-11-21 09:00:00.000000','2026-11-22 09:00:00.000000');
CREATE TABLE comment_places (
    lesson VARCHAR(200) NOT NULL,
    cell VARCHAR(100) NOT NULL,
    shown INTEGER NOT NULL,
    CONSTRAINT pk_comment_places PRIMARY KEY (lesson, cell)
);
INSERT INTO "comment_places" VALUES('distributed-tensorflow/your-first-strategy','',3);
INSERT INTO "comment_places" VALUES('distributed-tensorflow/your-first-strategy','make-dataset',0);
CREATE TABLE comment_reactions (
    comment_id VARCHAR(32) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    at DATETIME NOT NULL,
    CONSTRAINT pk_comment_reactions PRIMARY KEY (comment_id, account_id, kind),
    CONSTRAINT fk_comment_reactions_comment_id_comments FOREIGN KEY(comment_id) REFERENCES comments (id) ON DELETE CASCADE,
    CONSTRAINT fk_comment_reactions_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "comment_reactions" VALUES('c1','c3000000000000000000000000000000','helpful','2026-11-21 13:00:00.000000');
CREATE TABLE comment_reports (
    comment_id VARCHAR(32) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    reason VARCHAR(500) NOT NULL,
    at DATETIME NOT NULL,
    settled BOOLEAN NOT NULL,
    CONSTRAINT pk_comment_reports PRIMARY KEY (comment_id, account_id),
    CONSTRAINT fk_comment_reports_comment_id_comments FOREIGN KEY(comment_id) REFERENCES comments (id) ON DELETE CASCADE,
    CONSTRAINT fk_comment_reports_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "comment_reports" VALUES('c1','b2000000000000000000000000000000','Is this serious?','2026-11-21 14:00:00.000000',0);
INSERT INTO "comment_reports" VALUES('c4','a1000000000000000000000000000000','Off topic.','2026-11-21 15:00:00.000000',1);
CREATE TABLE comment_versions (
    comment_id VARCHAR(32) NOT NULL,
    number INTEGER NOT NULL,
    source TEXT NOT NULL,
    written_at DATETIME NOT NULL,
    CONSTRAINT pk_comment_versions PRIMARY KEY (comment_id, number),
    CONSTRAINT fk_comment_versions_comment_id_comments FOREIGN KEY(comment_id) REFERENCES comments (id) ON DELETE CASCADE
);
INSERT INTO "comment_versions" VALUES('c1',0,'Why two?','2026-11-21 09:00:00.000000');
CREATE TABLE comments (
    id VARCHAR(32) NOT NULL,
    lesson VARCHAR(200) NOT NULL,
    cell VARCHAR(100) NOT NULL,
    thread_id VARCHAR(32),
    author_id VARCHAR(32),
    "key" VARCHAR(64) NOT NULL,
    source TEXT NOT NULL,
    html TEXT NOT NULL,
    renderer INTEGER NOT NULL,
    language VARCHAR(8) NOT NULL,
    state VARCHAR(16) NOT NULL,
    created_at DATETIME NOT NULL,
    edited_at DATETIME,
    edits INTEGER NOT NULL,
    pinned BOOLEAN NOT NULL,
    answer_id VARCHAR(32),
    replies INTEGER NOT NULL,
    helpful INTEGER NOT NULL,
    same INTEGER NOT NULL,
    thanks INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    reason VARCHAR(500) NOT NULL,
    moderated_by VARCHAR(32),
    moderated_at DATETIME,
    CONSTRAINT pk_comments PRIMARY KEY (id),
    CONSTRAINT ck_comments_state_known CHECK (state IN ('shown', 'held', 'hidden', 'deleted')),
    CONSTRAINT fk_comments_author_id_accounts FOREIGN KEY(author_id) REFERENCES accounts (id) ON DELETE SET NULL,
    CONSTRAINT fk_comments_moderated_by_accounts FOREIGN KEY(moderated_by) REFERENCES accounts (id) ON DELETE SET NULL,
    CONSTRAINT fk_comments_thread_id_comments FOREIGN KEY(thread_id) REFERENCES comments (id) ON DELETE CASCADE,
    CONSTRAINT uq_comments_author_id_key UNIQUE (author_id, "key")
);
INSERT INTO "comments" VALUES('c1','distributed-tensorflow/your-first-strategy','',NULL,'a1000000000000000000000000000000','form-c1','Why is a batch cut in *two*?','<p>Why is a batch cut in *two*?</p>',3,'en','shown','2026-11-21 09:00:00.000000','2026-11-21 10:00:00.000000',1,1,'c2',2,1,2,3,1,'',NULL,NULL);
INSERT INTO "comments" VALUES('c2','distributed-tensorflow/your-first-strategy','','c1','c3000000000000000000000000000000','form-c2','Each replica gets its part.','<p>Each replica gets its part.</p>',3,'en','shown','2026-11-21 11:00:00.000000',NULL,0,0,NULL,0,0,0,0,0,'',NULL,NULL);
INSERT INTO "comments" VALUES('c3','distributed-tensorflow/your-first-strategy','','c1',NULL,'form-c3','세 번째 댓글; it''s ''quoted''','<p>세 번째 댓글; it''s ''quoted''</p>',3,'ko','shown','2026-11-21 12:00:00.000000',NULL,0,0,NULL,0,0,0,0,0,'',NULL,NULL);
INSERT INTO "comments" VALUES('c4','distributed-tensorflow/your-first-strategy','make-dataset',NULL,'b2000000000000000000000000000000','form-c4','Hidden.','<p>Hidden.</p>',3,'en','hidden','2026-11-21 09:00:00.000000',NULL,0,0,NULL,0,0,0,0,0,'Not about the lesson.','c3000000000000000000000000000000','2026-11-22 09:00:00.000000');
CREATE TABLE earlier_handles (
    handle_hash VARCHAR(64) NOT NULL,
    account_id VARCHAR(32),
    CONSTRAINT pk_earlier_handles PRIMARY KEY (handle_hash),
    CONSTRAINT fk_earlier_handles_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE SET NULL
);
INSERT INTO "earlier_handles" VALUES('hash-of-lovelace','a1000000000000000000000000000000');
INSERT INTO "earlier_handles" VALUES('hash-of-nobody',NULL);
CREATE TABLE handshakes (
    key_hash VARCHAR(64) NOT NULL,
    browser_hash VARCHAR(64) NOT NULL,
    purpose VARCHAR(64) NOT NULL,
    account_id VARCHAR(32),
    facts TEXT NOT NULL,
    expires_at DATETIME NOT NULL,
    CONSTRAINT pk_handshakes PRIMARY KEY (key_hash),
    CONSTRAINT fk_handshakes_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "handshakes" VALUES('hash-of-challenge','hash-of-cookie','add-passkey','a1000000000000000000000000000000','{"name": "Phone"}','2026-11-22 09:00:00.000000');
CREATE TABLE identities (
    issuer VARCHAR(200) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    email VARCHAR(320) NOT NULL,
    created_at DATETIME NOT NULL,
    CONSTRAINT pk_identities PRIMARY KEY (issuer, subject),
    CONSTRAINT fk_identities_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE,
    CONSTRAINT uq_identities_account_id_issuer UNIQUE (account_id, issuer)
);
INSERT INTO "identities" VALUES('https://accounts.example.org','subject-1','b2000000000000000000000000000000','bob@example.org','2026-11-20 09:00:00.000000');
CREATE TABLE invitations (
    token_hash VARCHAR(64) NOT NULL,
    email VARCHAR(320),
    role VARCHAR(16) NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    used_at DATETIME,
    CONSTRAINT pk_invitations PRIMARY KEY (token_hash)
);
INSERT INTO "invitations" VALUES('token-of-invitation','alan@example.org','instructor','2026-11-20 09:00:00.000000','2026-12-04 00:00:00.000000',NULL);
CREATE TABLE learner_zones (
    learner_id VARCHAR(64) NOT NULL,
    time_zone VARCHAR(64) NOT NULL,
    said_at DATETIME NOT NULL,
    CONSTRAINT pk_learner_zones PRIMARY KEY (learner_id)
);
INSERT INTO "learner_zones" VALUES('visitor-ada','Asia/Tokyo','2026-11-22 09:00:00.000000');
CREATE TABLE ledger (
    learner_id VARCHAR(64) NOT NULL,
    kind VARCHAR(24) NOT NULL,
    subject VARCHAR(320) NOT NULL,
    xp INTEGER NOT NULL,
    at DATETIME NOT NULL,
    CONSTRAINT pk_ledger PRIMARY KEY (learner_id, kind, subject)
);
INSERT INTO "ledger" VALUES('visitor-ada','cell','distributed-tensorflow/your-first-strategy#make-dataset',10,'2026-11-21 09:00:00.000000');
INSERT INTO "ledger" VALUES('visitor-ada','day','2026-11-21',0,'2026-11-21 09:00:00.000000');
CREATE TABLE lesson_progress (
    learner_id VARCHAR(64) NOT NULL,
    lesson VARCHAR(200) NOT NULL,
    started_at DATETIME NOT NULL,
    end_reached_at DATETIME,
    completed_at DATETIME,
    revisited_at DATETIME,
    seen_at DATETIME NOT NULL,
    place VARCHAR(100) NOT NULL,
    CONSTRAINT pk_lesson_progress PRIMARY KEY (learner_id, lesson)
);
INSERT INTO "lesson_progress" VALUES('visitor-ada','distributed-tensorflow/your-first-strategy','2026-11-20 09:00:00.000000','2026-11-21 09:00:00.000000','2026-11-21 10:00:00.000000','2026-11-22 09:00:00.000000','2026-11-22 12:00:00.000000','a-heading');
CREATE TABLE lesson_votes (
    learner_id VARCHAR(64) NOT NULL,
    lesson VARCHAR(200) NOT NULL,
    id VARCHAR(32) NOT NULL,
    helpful BOOLEAN NOT NULL,
    sentence VARCHAR(500) NOT NULL,
    language VARCHAR(8) NOT NULL,
    at DATETIME NOT NULL,
    CONSTRAINT pk_lesson_votes PRIMARY KEY (learner_id, lesson),
    CONSTRAINT uq_lesson_votes_id UNIQUE (id)
);
INSERT INTO "lesson_votes" VALUES('visitor-ada','distributed-tensorflow/your-first-strategy','v1',1,'The drawing.','en','2026-11-21 16:00:00.000000');
CREATE TABLE mail_links (
    token_hash VARCHAR(64) NOT NULL,
    purpose VARCHAR(16) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    email VARCHAR(320) NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    used_at DATETIME,
    CONSTRAINT pk_mail_links PRIMARY KEY (token_hash),
    CONSTRAINT fk_mail_links_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "mail_links" VALUES('token-of-link','reset','a1000000000000000000000000000000','Ada@Example.org','2026-11-20 09:00:00.000000','2026-11-21 09:00:00.000000','2026-11-20 10:00:00.000000');
CREATE TABLE merged_visitors (
    visitor_id VARCHAR(64) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    merged_at DATETIME NOT NULL,
    CONSTRAINT pk_merged_visitors PRIMARY KEY (visitor_id),
    CONSTRAINT fk_merged_visitors_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "merged_visitors" VALUES('visitor-phone','a1000000000000000000000000000000','2026-11-21 09:00:00.000000');
CREATE TABLE notifications (
    id VARCHAR(32) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    subject VARCHAR(200) NOT NULL,
    actor_id VARCHAR(32),
    created_at DATETIME NOT NULL,
    read_at DATETIME,
    mailed_at DATETIME,
    CONSTRAINT pk_notifications PRIMARY KEY (id),
    CONSTRAINT ck_notifications_kind_known CHECK (kind IN ('reply', 'mention', 'answered', 'achievement')),
    CONSTRAINT fk_notifications_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE,
    CONSTRAINT fk_notifications_actor_id_accounts FOREIGN KEY(actor_id) REFERENCES accounts (id) ON DELETE SET NULL,
    CONSTRAINT uq_notifications_account_id_kind_subject UNIQUE (account_id, kind, subject)
);
INSERT INTO "notifications" VALUES('n1','a1000000000000000000000000000000','answered','c2','c3000000000000000000000000000000','2026-11-21 11:00:00.000000','2026-11-21 17:00:00.000000','2026-11-21 12:00:00.000000');
CREATE TABLE "outbox" (
    id VARCHAR(32) NOT NULL,
    "to" VARCHAR(320) NOT NULL,
    subject VARCHAR(300) NOT NULL,
    text TEXT NOT NULL,
    html TEXT NOT NULL,
    unsubscribe_url VARCHAR(500) NOT NULL,
    state VARCHAR(16) NOT NULL,
    tries INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    due_at DATETIME NOT NULL,
    why VARCHAR(300) NOT NULL,
    account_id VARCHAR(32),
    CONSTRAINT pk_outbox PRIMARY KEY (id),
    CONSTRAINT ck_outbox_state_known CHECK (state IN ('waiting', 'sending', 'failed', 'doubtful')),
    CONSTRAINT fk_outbox_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "outbox" VALUES('m1','Ada@Example.org','A reply','Text','<p>Text</p>','https://learn.example.org/u/1','waiting',2,'2026-11-21 09:00:00.000000','2026-11-22 09:00:00.000000','the server is busy','a1000000000000000000000000000000');
INSERT INTO "outbox" VALUES('m2','x@example.org','Lost','','','','doubtful',1,'2026-11-21 09:00:00.000000','2026-11-21 09:00:00.000000','its sender ended',NULL);
CREATE TABLE passkeys (
    id VARCHAR(400) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    name VARCHAR(80) NOT NULL,
    public_key BLOB NOT NULL,
    sign_count INTEGER NOT NULL,
    transports VARCHAR(100) NOT NULL,
    created_at DATETIME NOT NULL,
    used_at DATETIME,
    CONSTRAINT pk_passkeys PRIMARY KEY (id),
    CONSTRAINT fk_passkeys_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "passkeys" VALUES('credential-1','a1000000000000000000000000000000','Phone',X'00A501FF',4,'internal,hybrid','2026-11-20 09:00:00.000000','2026-11-21 09:00:00.000000');
CREATE TABLE problems (
    id VARCHAR(32) NOT NULL,
    "key" VARCHAR(64) NOT NULL,
    learner_id VARCHAR(64),
    kind VARCHAR(16) NOT NULL,
    page VARCHAR(300) NOT NULL,
    lesson VARCHAR(200) NOT NULL,
    cell VARCHAR(100) NOT NULL,
    text TEXT NOT NULL,
    language VARCHAR(8) NOT NULL,
    created_at DATETIME NOT NULL,
    handled_at DATETIME,
    handled_by VARCHAR(32),
    note VARCHAR(500) NOT NULL,
    CONSTRAINT pk_problems PRIMARY KEY (id),
    CONSTRAINT ck_problems_kind_known CHECK (kind IN ('text', 'code', 'translation', 'page', 'other')),
    CONSTRAINT fk_problems_handled_by_accounts FOREIGN KEY(handled_by) REFERENCES accounts (id) ON DELETE SET NULL,
    CONSTRAINT uq_problems_key UNIQUE ("key")
);
INSERT INTO "problems" VALUES('p1','form-p1','visitor-ada','code','/en/lessons/x','distributed-tensorflow/your-first-strategy','make-dataset','The cell prints nothing.','en','2026-11-21 09:00:00.000000','2026-11-22 09:00:00.000000','c3000000000000000000000000000000','Fixed.');
INSERT INTO "problems" VALUES('p2','form-p2',NULL,'other','','','','Hello','zh','2026-11-21 09:00:00.000000',NULL,NULL,'');
CREATE TABLE run_events (
    run_id VARCHAR(64) NOT NULL,
    seq INTEGER NOT NULL,
    kind VARCHAR(16) NOT NULL,
    at_ms BIGINT NOT NULL,
    payload TEXT NOT NULL,
    CONSTRAINT pk_run_events PRIMARY KEY (run_id, seq),
    CONSTRAINT fk_run_events_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_events" VALUES('r1',1,'text',1795250520000,'{"text": "가\n"}');
INSERT INTO "run_events" VALUES('r1',2,'finished',1795250580000,'{"outcome": "ok"}');
CREATE TABLE runs (
    id VARCHAR(64) NOT NULL,
    visitor_id VARCHAR(64) NOT NULL,
    session_id VARCHAR(64) NOT NULL,
    lesson VARCHAR(200) NOT NULL,
    cell VARCHAR(100) NOT NULL,
    code TEXT NOT NULL,
    topology VARCHAR(64) NOT NULL,
    keras INTEGER NOT NULL,
    language VARCHAR(8) NOT NULL,
    created_at DATETIME NOT NULL,
    handed_in_at DATETIME,
    state VARCHAR(16) NOT NULL,
    outcome VARCHAR(16),
    started_at DATETIME,
    finished_at DATETIME,
    first_output_ms INTEGER,
    duration_ms INTEGER,
    peak_bytes BIGINT,
    last_seq INTEGER NOT NULL,
    stored_bytes BIGINT NOT NULL, pruned_at DATETIME,
    CONSTRAINT pk_runs PRIMARY KEY (id),
    CONSTRAINT ck_runs_state_known CHECK (state IN ('queued', 'running', 'finished')),
    CONSTRAINT ck_runs_finished_has_outcome CHECK ((state = 'finished') = (outcome IS NOT NULL))
);
INSERT INTO "runs" VALUES('r1','visitor-ada','s1','distributed-tensorflow/your-first-strategy','make-dataset','print(''가'')','gpu:4',3,'en','2026-11-21 09:00:00.000000','2026-11-21 09:01:00.000000','finished','ok','2026-11-21 09:02:00.000000','2026-11-21 09:03:00.000000',120,60000,5000000000,2,1450,NULL);
INSERT INTO "runs" VALUES('r2','visitor-guest','s2','distributed-tensorflow/your-first-strategy','make-dataset','1/0','cpu',2,'ko','2026-11-22 09:00:00.000000',NULL,'queued',NULL,NULL,NULL,NULL,NULL,NULL,0,1003,'2026-11-22 10:00:00.000000');
CREATE TABLE sign_ins (
    token_hash VARCHAR(64) NOT NULL,
    public_id VARCHAR(32) NOT NULL,
    account_id VARCHAR(32) NOT NULL,
    method VARCHAR(16) NOT NULL,
    created_at DATETIME NOT NULL,
    seen_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    agent VARCHAR(300) NOT NULL,
    address VARCHAR(64) NOT NULL,
    CONSTRAINT pk_sign_ins PRIMARY KEY (token_hash),
    CONSTRAINT fk_sign_ins_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE,
    CONSTRAINT uq_sign_ins_public_id UNIQUE (public_id)
);
INSERT INTO "sign_ins" VALUES('token-of-ada','sign-in-1','a1000000000000000000000000000000','password','2026-11-20 09:00:00.000000','2026-11-22 09:00:00.000000','2026-12-22 00:00:00.000000','Mozilla/5.0 Firefox/140.0','192.0.2.7');
CREATE TABLE unmailed_kinds (
    account_id VARCHAR(32) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    CONSTRAINT pk_unmailed_kinds PRIMARY KEY (account_id, kind),
    CONSTRAINT ck_unmailed_kinds_kind_known CHECK (kind IN ('reply', 'mention', 'answered', 'achievement')),
    CONSTRAINT fk_unmailed_kinds_account_id_accounts FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
INSERT INTO "unmailed_kinds" VALUES('b2000000000000000000000000000000','mention');
CREATE INDEX ix_runs_visitor_lesson ON runs (visitor_id, lesson, created_at);
CREATE INDEX ix_runs_state ON runs (state);
CREATE INDEX ix_runs_session_id ON runs (session_id);
CREATE INDEX ix_identities_account_id ON identities (account_id);
CREATE INDEX ix_mail_links_account_id ON mail_links (account_id);
CREATE INDEX ix_merged_visitors_account_id ON merged_visitors (account_id);
CREATE INDEX ix_passkeys_account_id ON passkeys (account_id);
CREATE INDEX ix_sign_ins_account_id ON sign_ins (account_id);
CREATE INDEX ix_ledger_learner_id_at ON ledger (learner_id, at);
CREATE INDEX ix_comments_place ON comments (lesson, cell, id) WHERE thread_id IS NULL;
CREATE INDEX ix_comments_pinned ON comments (lesson, cell, id) WHERE pinned;
CREATE INDEX ix_comments_thread_id ON comments (thread_id, id) WHERE thread_id IS NOT NULL;
CREATE INDEX ix_comments_author_id ON comments (author_id, id);
CREATE INDEX ix_comments_held ON comments (id) WHERE state = 'held';
CREATE INDEX ix_comments_reported ON comments (id) WHERE reports > 0;
CREATE INDEX ix_comment_reactions_account_id ON comment_reactions (account_id);
CREATE INDEX ix_comment_reports_account_id ON comment_reports (account_id);
CREATE INDEX ix_handshakes_expires_at ON handshakes (expires_at);
CREATE INDEX ix_problems_open ON problems (id) WHERE handled_at IS NULL;
CREATE INDEX ix_problems_lesson ON problems (lesson, id);
CREATE INDEX ix_problems_kind ON problems (kind, id);
CREATE INDEX ix_problems_learner_id ON problems (learner_id);
CREATE INDEX ix_lesson_votes_lesson ON lesson_votes (lesson, helpful);
CREATE INDEX ix_lesson_votes_said ON lesson_votes (id) WHERE sentence <> '';
CREATE INDEX ix_lesson_votes_said_of ON lesson_votes (lesson, id) WHERE sentence <> '';
CREATE INDEX ix_notifications_account_id ON notifications (account_id, id);
CREATE INDEX ix_notifications_unread ON notifications (account_id) WHERE read_at IS NULL;
CREATE INDEX ix_notifications_waiting ON notifications (created_at) WHERE read_at IS NULL AND mailed_at IS NULL;
CREATE INDEX ix_notifications_created_at ON notifications (created_at);
CREATE INDEX ix_notifications_subject ON notifications (subject);
CREATE INDEX ix_notifications_actor_id ON notifications (actor_id);
CREATE INDEX ix_outbox_state_due_at ON outbox (state, due_at);
CREATE INDEX ix_outbox_account_id ON outbox (account_id);
CREATE INDEX ix_earlier_handles_account_id ON earlier_handles (account_id);
CREATE INDEX ix_comments_renderer ON comments (renderer);
CREATE INDEX ix_runs_visitor_stored ON runs (visitor_id, stored_bytes);
CREATE INDEX ix_runs_unpruned ON runs (finished_at) WHERE pruned_at IS NULL;
COMMIT;
