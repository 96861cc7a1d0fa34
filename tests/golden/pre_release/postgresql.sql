-- A database of commit 03760b7, from before the first version, with a few rows in each table.
-- Written by pg_dump --column-inserts, without its comments and settings.
CREATE TABLE accounts (
    id character varying(32) NOT NULL,
    learner_id character varying(64) NOT NULL,
    email character varying(320) NOT NULL,
    email_key character varying(320) NOT NULL,
    email_confirmed_at timestamp with time zone,
    password_hash character varying(255),
    name character varying(80) NOT NULL,
    handle character varying(40) NOT NULL,
    role character varying(16) NOT NULL,
    language character varying(8) NOT NULL,
    time_zone character varying(64) NOT NULL,
    public_profile boolean NOT NULL,
    mailing character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    disabled_at timestamp with time zone,
    CONSTRAINT ck_accounts_mailing_known CHECK (((mailing)::text = ANY ((ARRAY['at_once'::character varying, 'daily'::character varying, 'never'::character varying])::text[]))),
    CONSTRAINT ck_accounts_role_known CHECK (((role)::text = ANY ((ARRAY['learner'::character varying, 'instructor'::character varying, 'admin'::character varying])::text[])))
);
CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE attempts (
    key character varying(120) NOT NULL,
    count integer NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL
);
CREATE TABLE comment_places (
    lesson character varying(200) NOT NULL,
    cell character varying(100) NOT NULL,
    shown integer NOT NULL
);
CREATE TABLE comment_reactions (
    comment_id character varying(32) NOT NULL,
    account_id character varying(32) NOT NULL,
    kind character varying(16) NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE comment_reports (
    comment_id character varying(32) NOT NULL,
    account_id character varying(32) NOT NULL,
    reason character varying(500) NOT NULL,
    at timestamp with time zone NOT NULL,
    settled boolean NOT NULL
);
CREATE TABLE comment_versions (
    comment_id character varying(32) NOT NULL,
    number integer NOT NULL,
    source text NOT NULL,
    written_at timestamp with time zone NOT NULL
);
CREATE TABLE comments (
    id character varying(32) NOT NULL,
    lesson character varying(200) NOT NULL,
    cell character varying(100) NOT NULL,
    thread_id character varying(32),
    author_id character varying(32),
    key character varying(64) NOT NULL,
    source text NOT NULL,
    html text NOT NULL,
    renderer integer NOT NULL,
    language character varying(8) NOT NULL,
    state character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    edited_at timestamp with time zone,
    edits integer NOT NULL,
    pinned boolean NOT NULL,
    answer_id character varying(32),
    replies integer NOT NULL,
    helpful integer NOT NULL,
    same integer NOT NULL,
    thanks integer NOT NULL,
    reports integer NOT NULL,
    reason character varying(500) NOT NULL,
    moderated_by character varying(32),
    moderated_at timestamp with time zone,
    CONSTRAINT ck_comments_state_known CHECK (((state)::text = ANY ((ARRAY['shown'::character varying, 'held'::character varying, 'hidden'::character varying, 'deleted'::character varying])::text[])))
);
CREATE TABLE earlier_handles (
    handle_hash character varying(64) NOT NULL,
    account_id character varying(32)
);
CREATE TABLE handshakes (
    key_hash character varying(64) NOT NULL,
    browser_hash character varying(64) NOT NULL,
    purpose character varying(64) NOT NULL,
    account_id character varying(32),
    facts text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE identities (
    issuer character varying(200) NOT NULL,
    subject character varying(255) NOT NULL,
    account_id character varying(32) NOT NULL,
    email character varying(320) NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE invitations (
    token_hash character varying(64) NOT NULL,
    email character varying(320),
    role character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE learner_zones (
    learner_id character varying(64) NOT NULL,
    time_zone character varying(64) NOT NULL,
    said_at timestamp with time zone NOT NULL
);
CREATE TABLE ledger (
    learner_id character varying(64) NOT NULL,
    kind character varying(24) NOT NULL,
    subject character varying(320) NOT NULL,
    xp integer NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE lesson_progress (
    learner_id character varying(64) NOT NULL,
    lesson character varying(200) NOT NULL,
    started_at timestamp with time zone NOT NULL,
    end_reached_at timestamp with time zone,
    completed_at timestamp with time zone,
    revisited_at timestamp with time zone,
    seen_at timestamp with time zone NOT NULL,
    place character varying(100) NOT NULL
);
CREATE TABLE lesson_votes (
    learner_id character varying(64) NOT NULL,
    lesson character varying(200) NOT NULL,
    id character varying(32) NOT NULL,
    helpful boolean NOT NULL,
    sentence character varying(500) NOT NULL,
    language character varying(8) NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE mail_links (
    token_hash character varying(64) NOT NULL,
    purpose character varying(16) NOT NULL,
    account_id character varying(32) NOT NULL,
    email character varying(320) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE merged_visitors (
    visitor_id character varying(64) NOT NULL,
    account_id character varying(32) NOT NULL,
    merged_at timestamp with time zone NOT NULL
);
CREATE TABLE notifications (
    id character varying(32) NOT NULL,
    account_id character varying(32) NOT NULL,
    kind character varying(16) NOT NULL,
    subject character varying(200) NOT NULL,
    actor_id character varying(32),
    created_at timestamp with time zone NOT NULL,
    read_at timestamp with time zone,
    mailed_at timestamp with time zone,
    CONSTRAINT ck_notifications_kind_known CHECK (((kind)::text = ANY ((ARRAY['reply'::character varying, 'mention'::character varying, 'answered'::character varying, 'achievement'::character varying])::text[])))
);
CREATE TABLE outbox (
    id character varying(32) NOT NULL,
    "to" character varying(320) NOT NULL,
    subject character varying(300) NOT NULL,
    text text NOT NULL,
    html text NOT NULL,
    unsubscribe_url character varying(500) NOT NULL,
    state character varying(16) NOT NULL,
    tries integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    why character varying(300) NOT NULL,
    account_id character varying(32),
    CONSTRAINT ck_outbox_state_known CHECK (((state)::text = ANY ((ARRAY['waiting'::character varying, 'sending'::character varying, 'failed'::character varying, 'doubtful'::character varying])::text[])))
);
CREATE TABLE passkeys (
    id character varying(400) NOT NULL,
    account_id character varying(32) NOT NULL,
    name character varying(80) NOT NULL,
    public_key bytea NOT NULL,
    sign_count integer NOT NULL,
    transports character varying(100) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE problems (
    id character varying(32) NOT NULL,
    key character varying(64) NOT NULL,
    learner_id character varying(64),
    kind character varying(16) NOT NULL,
    page character varying(300) NOT NULL,
    lesson character varying(200) NOT NULL,
    cell character varying(100) NOT NULL,
    text text NOT NULL,
    language character varying(8) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    handled_at timestamp with time zone,
    handled_by character varying(32),
    note character varying(500) NOT NULL,
    CONSTRAINT ck_problems_kind_known CHECK (((kind)::text = ANY ((ARRAY['text'::character varying, 'code'::character varying, 'translation'::character varying, 'page'::character varying, 'other'::character varying])::text[])))
);
CREATE TABLE run_events (
    run_id character varying(64) NOT NULL,
    seq integer NOT NULL,
    kind character varying(16) NOT NULL,
    at_ms bigint NOT NULL,
    payload text NOT NULL
);
CREATE TABLE runs (
    id character varying(64) NOT NULL,
    visitor_id character varying(64) NOT NULL,
    session_id character varying(64) NOT NULL,
    lesson character varying(200) NOT NULL,
    cell character varying(100) NOT NULL,
    code text NOT NULL,
    topology character varying(64) NOT NULL,
    keras integer NOT NULL,
    language character varying(8) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    handed_in_at timestamp with time zone,
    state character varying(16) NOT NULL,
    outcome character varying(16),
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    first_output_ms integer,
    duration_ms integer,
    peak_bytes bigint,
    last_seq integer NOT NULL,
    stored_bytes bigint NOT NULL,
    pruned_at timestamp with time zone,
    CONSTRAINT ck_runs_finished_has_outcome CHECK ((((state)::text = 'finished'::text) = (outcome IS NOT NULL))),
    CONSTRAINT ck_runs_state_known CHECK (((state)::text = ANY ((ARRAY['queued'::character varying, 'running'::character varying, 'finished'::character varying])::text[])))
);
CREATE TABLE sign_ins (
    token_hash character varying(64) NOT NULL,
    public_id character varying(32) NOT NULL,
    account_id character varying(32) NOT NULL,
    method character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    agent character varying(300) NOT NULL,
    address character varying(64) NOT NULL
);
CREATE TABLE unmailed_kinds (
    account_id character varying(32) NOT NULL,
    kind character varying(16) NOT NULL,
    CONSTRAINT ck_unmailed_kinds_kind_known CHECK (((kind)::text = ANY ((ARRAY['reply'::character varying, 'mention'::character varying, 'answered'::character varying, 'achievement'::character varying])::text[])))
);
INSERT INTO accounts (id, learner_id, email, email_key, email_confirmed_at, password_hash, name, handle, role, language, time_zone, public_profile, mailing, created_at, disabled_at) VALUES ('a1000000000000000000000000000000', 'visitor-ada', 'Ada@Example.org', 'ada@example.org', '2026-11-20 09:05:00+00', '$argon2id$v=19$ada', 'Ada', 'ada', 'learner', 'en', 'Europe/Paris', true, 'at_once', '2026-11-20 09:00:00+00', NULL);
INSERT INTO accounts (id, learner_id, email, email_key, email_confirmed_at, password_hash, name, handle, role, language, time_zone, public_profile, mailing, created_at, disabled_at) VALUES ('b2000000000000000000000000000000', 'visitor-bob', 'bob@example.org', 'bob@example.org', NULL, NULL, 'Bob', 'bob', 'learner', 'ko', 'Asia/Seoul', false, 'daily', '2026-11-20 09:00:00+00', '2026-11-22 09:00:00+00');
INSERT INTO accounts (id, learner_id, email, email_key, email_confirmed_at, password_hash, name, handle, role, language, time_zone, public_profile, mailing, created_at, disabled_at) VALUES ('c3000000000000000000000000000000', 'visitor-grace', 'grace@example.org', 'grace@example.org', '2026-11-20 09:05:00+00', NULL, 'Grace O''Hara', 'grace', 'instructor', 'en', 'UTC', false, 'never', '2026-11-20 09:00:00+00', NULL);
INSERT INTO alembic_version (version_num) VALUES ('add_run_pruning');
INSERT INTO attempts (key, count, first_at, last_at) VALUES ('sign-in address 192.0.2.0/24', 3, '2026-11-21 09:00:00+00', '2026-11-22 09:00:00+00');
INSERT INTO comment_places (lesson, cell, shown) VALUES ('distributed-tensorflow/your-first-strategy', '', 3);
INSERT INTO comment_places (lesson, cell, shown) VALUES ('distributed-tensorflow/your-first-strategy', 'make-dataset', 0);
INSERT INTO comment_reactions (comment_id, account_id, kind, at) VALUES ('c1', 'c3000000000000000000000000000000', 'helpful', '2026-11-21 13:00:00+00');
INSERT INTO comment_reports (comment_id, account_id, reason, at, settled) VALUES ('c1', 'b2000000000000000000000000000000', 'Is this serious?', '2026-11-21 14:00:00+00', false);
INSERT INTO comment_reports (comment_id, account_id, reason, at, settled) VALUES ('c4', 'a1000000000000000000000000000000', 'Off topic.', '2026-11-21 15:00:00+00', true);
INSERT INTO comment_versions (comment_id, number, source, written_at) VALUES ('c1', 0, 'Why two?', '2026-11-21 09:00:00+00');
INSERT INTO comments (id, lesson, cell, thread_id, author_id, key, source, html, renderer, language, state, created_at, edited_at, edits, pinned, answer_id, replies, helpful, same, thanks, reports, reason, moderated_by, moderated_at) VALUES ('c1', 'distributed-tensorflow/your-first-strategy', '', NULL, 'a1000000000000000000000000000000', 'form-c1', 'Why is a batch cut in *two*?', '<p>Why is a batch cut in *two*?</p>', 3, 'en', 'shown', '2026-11-21 09:00:00+00', '2026-11-21 10:00:00+00', 1, true, 'c2', 2, 1, 2, 3, 1, '', NULL, NULL);
INSERT INTO comments (id, lesson, cell, thread_id, author_id, key, source, html, renderer, language, state, created_at, edited_at, edits, pinned, answer_id, replies, helpful, same, thanks, reports, reason, moderated_by, moderated_at) VALUES ('c2', 'distributed-tensorflow/your-first-strategy', '', 'c1', 'c3000000000000000000000000000000', 'form-c2', 'Each replica gets its part.', '<p>Each replica gets its part.</p>', 3, 'en', 'shown', '2026-11-21 11:00:00+00', NULL, 0, false, NULL, 0, 0, 0, 0, 0, '', NULL, NULL);
INSERT INTO comments (id, lesson, cell, thread_id, author_id, key, source, html, renderer, language, state, created_at, edited_at, edits, pinned, answer_id, replies, helpful, same, thanks, reports, reason, moderated_by, moderated_at) VALUES ('c3', 'distributed-tensorflow/your-first-strategy', '', 'c1', NULL, 'form-c3', '세 번째 댓글; it''s ''quoted''', '<p>세 번째 댓글; it''s ''quoted''</p>', 3, 'ko', 'shown', '2026-11-21 12:00:00+00', NULL, 0, false, NULL, 0, 0, 0, 0, 0, '', NULL, NULL);
INSERT INTO comments (id, lesson, cell, thread_id, author_id, key, source, html, renderer, language, state, created_at, edited_at, edits, pinned, answer_id, replies, helpful, same, thanks, reports, reason, moderated_by, moderated_at) VALUES ('c4', 'distributed-tensorflow/your-first-strategy', 'make-dataset', NULL, 'b2000000000000000000000000000000', 'form-c4', 'Hidden.', '<p>Hidden.</p>', 3, 'en', 'hidden', '2026-11-21 09:00:00+00', NULL, 0, false, NULL, 0, 0, 0, 0, 0, 'Not about the lesson.', 'c3000000000000000000000000000000', '2026-11-22 09:00:00+00');
INSERT INTO earlier_handles (handle_hash, account_id) VALUES ('hash-of-lovelace', 'a1000000000000000000000000000000');
INSERT INTO earlier_handles (handle_hash, account_id) VALUES ('hash-of-nobody', NULL);
INSERT INTO handshakes (key_hash, browser_hash, purpose, account_id, facts, expires_at) VALUES ('hash-of-challenge', 'hash-of-cookie', 'add-passkey', 'a1000000000000000000000000000000', '{"name": "Phone"}', '2026-11-22 09:00:00+00');
INSERT INTO identities (issuer, subject, account_id, email, created_at) VALUES ('https://accounts.example.org', 'subject-1', 'b2000000000000000000000000000000', 'bob@example.org', '2026-11-20 09:00:00+00');
INSERT INTO invitations (token_hash, email, role, created_at, expires_at, used_at) VALUES ('token-of-invitation', 'alan@example.org', 'instructor', '2026-11-20 09:00:00+00', '2026-12-04 00:00:00+00', NULL);
INSERT INTO learner_zones (learner_id, time_zone, said_at) VALUES ('visitor-ada', 'Asia/Tokyo', '2026-11-22 09:00:00+00');
INSERT INTO ledger (learner_id, kind, subject, xp, at) VALUES ('visitor-ada', 'cell', 'distributed-tensorflow/your-first-strategy#make-dataset', 10, '2026-11-21 09:00:00+00');
INSERT INTO ledger (learner_id, kind, subject, xp, at) VALUES ('visitor-ada', 'day', '2026-11-21', 0, '2026-11-21 09:00:00+00');
INSERT INTO lesson_progress (learner_id, lesson, started_at, end_reached_at, completed_at, revisited_at, seen_at, place) VALUES ('visitor-ada', 'distributed-tensorflow/your-first-strategy', '2026-11-20 09:00:00+00', '2026-11-21 09:00:00+00', '2026-11-21 10:00:00+00', '2026-11-22 09:00:00+00', '2026-11-22 12:00:00+00', 'a-heading');
INSERT INTO lesson_votes (learner_id, lesson, id, helpful, sentence, language, at) VALUES ('visitor-ada', 'distributed-tensorflow/your-first-strategy', 'v1', true, 'The drawing.', 'en', '2026-11-21 16:00:00+00');
INSERT INTO mail_links (token_hash, purpose, account_id, email, created_at, expires_at, used_at) VALUES ('token-of-link', 'reset', 'a1000000000000000000000000000000', 'Ada@Example.org', '2026-11-20 09:00:00+00', '2026-11-21 09:00:00+00', '2026-11-20 10:00:00+00');
INSERT INTO merged_visitors (visitor_id, account_id, merged_at) VALUES ('visitor-phone', 'a1000000000000000000000000000000', '2026-11-21 09:00:00+00');
INSERT INTO notifications (id, account_id, kind, subject, actor_id, created_at, read_at, mailed_at) VALUES ('n1', 'a1000000000000000000000000000000', 'answered', 'c2', 'c3000000000000000000000000000000', '2026-11-21 11:00:00+00', '2026-11-21 17:00:00+00', '2026-11-21 12:00:00+00');
INSERT INTO outbox (id, "to", subject, text, html, unsubscribe_url, state, tries, created_at, due_at, why, account_id) VALUES ('m1', 'Ada@Example.org', 'A reply', 'Text', '<p>Text</p>', 'https://learn.example.org/u/1', 'waiting', 2, '2026-11-21 09:00:00+00', '2026-11-22 09:00:00+00', 'the server is busy', 'a1000000000000000000000000000000');
INSERT INTO outbox (id, "to", subject, text, html, unsubscribe_url, state, tries, created_at, due_at, why, account_id) VALUES ('m2', 'x@example.org', 'Lost', '', '', '', 'doubtful', 1, '2026-11-21 09:00:00+00', '2026-11-21 09:00:00+00', 'its sender ended', NULL);
INSERT INTO passkeys (id, account_id, name, public_key, sign_count, transports, created_at, used_at) VALUES ('credential-1', 'a1000000000000000000000000000000', 'Phone', '\x00a501ff', 4, 'internal,hybrid', '2026-11-20 09:00:00+00', '2026-11-21 09:00:00+00');
INSERT INTO problems (id, key, learner_id, kind, page, lesson, cell, text, language, created_at, handled_at, handled_by, note) VALUES ('p1', 'form-p1', 'visitor-ada', 'code', '/en/lessons/x', 'distributed-tensorflow/your-first-strategy', 'make-dataset', 'The cell prints nothing.', 'en', '2026-11-21 09:00:00+00', '2026-11-22 09:00:00+00', 'c3000000000000000000000000000000', 'Fixed.');
INSERT INTO problems (id, key, learner_id, kind, page, lesson, cell, text, language, created_at, handled_at, handled_by, note) VALUES ('p2', 'form-p2', NULL, 'other', '', '', '', 'Hello', 'zh', '2026-11-21 09:00:00+00', NULL, NULL, '');
INSERT INTO run_events (run_id, seq, kind, at_ms, payload) VALUES ('r1', 1, 'text', 1795250520000, '{"text": "가\n"}');
INSERT INTO run_events (run_id, seq, kind, at_ms, payload) VALUES ('r1', 2, 'finished', 1795250580000, '{"outcome": "ok"}');
INSERT INTO runs (id, visitor_id, session_id, lesson, cell, code, topology, keras, language, created_at, handed_in_at, state, outcome, started_at, finished_at, first_output_ms, duration_ms, peak_bytes, last_seq, stored_bytes, pruned_at) VALUES ('r1', 'visitor-ada', 's1', 'distributed-tensorflow/your-first-strategy', 'make-dataset', 'print(''가'')', 'gpu:4', 3, 'en', '2026-11-21 09:00:00+00', '2026-11-21 09:01:00+00', 'finished', 'ok', '2026-11-21 09:02:00+00', '2026-11-21 09:03:00+00', 120, 60000, 5000000000, 2, 1450, NULL);
INSERT INTO runs (id, visitor_id, session_id, lesson, cell, code, topology, keras, language, created_at, handed_in_at, state, outcome, started_at, finished_at, first_output_ms, duration_ms, peak_bytes, last_seq, stored_bytes, pruned_at) VALUES ('r2', 'visitor-guest', 's2', 'distributed-tensorflow/your-first-strategy', 'make-dataset', '1/0', 'cpu', 2, 'ko', '2026-11-22 09:00:00+00', NULL, 'queued', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1003, '2026-11-22 10:00:00+00');
INSERT INTO sign_ins (token_hash, public_id, account_id, method, created_at, seen_at, expires_at, agent, address) VALUES ('token-of-ada', 'sign-in-1', 'a1000000000000000000000000000000', 'password', '2026-11-20 09:00:00+00', '2026-11-22 09:00:00+00', '2026-12-22 00:00:00+00', 'Mozilla/5.0 Firefox/140.0', '192.0.2.7');
INSERT INTO unmailed_kinds (account_id, kind) VALUES ('b2000000000000000000000000000000', 'mention');
ALTER TABLE ONLY alembic_version ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY accounts ADD CONSTRAINT pk_accounts PRIMARY KEY (id);
ALTER TABLE ONLY attempts ADD CONSTRAINT pk_attempts PRIMARY KEY (key);
ALTER TABLE ONLY comment_places ADD CONSTRAINT pk_comment_places PRIMARY KEY (lesson, cell);
ALTER TABLE ONLY comment_reactions ADD CONSTRAINT pk_comment_reactions PRIMARY KEY (comment_id, account_id, kind);
ALTER TABLE ONLY comment_reports ADD CONSTRAINT pk_comment_reports PRIMARY KEY (comment_id, account_id);
ALTER TABLE ONLY comment_versions ADD CONSTRAINT pk_comment_versions PRIMARY KEY (comment_id, number);
ALTER TABLE ONLY comments ADD CONSTRAINT pk_comments PRIMARY KEY (id);
ALTER TABLE ONLY earlier_handles ADD CONSTRAINT pk_earlier_handles PRIMARY KEY (handle_hash);
ALTER TABLE ONLY handshakes ADD CONSTRAINT pk_handshakes PRIMARY KEY (key_hash);
ALTER TABLE ONLY identities ADD CONSTRAINT pk_identities PRIMARY KEY (issuer, subject);
ALTER TABLE ONLY invitations ADD CONSTRAINT pk_invitations PRIMARY KEY (token_hash);
ALTER TABLE ONLY learner_zones ADD CONSTRAINT pk_learner_zones PRIMARY KEY (learner_id);
ALTER TABLE ONLY ledger ADD CONSTRAINT pk_ledger PRIMARY KEY (learner_id, kind, subject);
ALTER TABLE ONLY lesson_progress ADD CONSTRAINT pk_lesson_progress PRIMARY KEY (learner_id, lesson);
ALTER TABLE ONLY lesson_votes ADD CONSTRAINT pk_lesson_votes PRIMARY KEY (learner_id, lesson);
ALTER TABLE ONLY mail_links ADD CONSTRAINT pk_mail_links PRIMARY KEY (token_hash);
ALTER TABLE ONLY merged_visitors ADD CONSTRAINT pk_merged_visitors PRIMARY KEY (visitor_id);
ALTER TABLE ONLY notifications ADD CONSTRAINT pk_notifications PRIMARY KEY (id);
ALTER TABLE ONLY outbox ADD CONSTRAINT pk_outbox PRIMARY KEY (id);
ALTER TABLE ONLY passkeys ADD CONSTRAINT pk_passkeys PRIMARY KEY (id);
ALTER TABLE ONLY problems ADD CONSTRAINT pk_problems PRIMARY KEY (id);
ALTER TABLE ONLY run_events ADD CONSTRAINT pk_run_events PRIMARY KEY (run_id, seq);
ALTER TABLE ONLY runs ADD CONSTRAINT pk_runs PRIMARY KEY (id);
ALTER TABLE ONLY sign_ins ADD CONSTRAINT pk_sign_ins PRIMARY KEY (token_hash);
ALTER TABLE ONLY unmailed_kinds ADD CONSTRAINT pk_unmailed_kinds PRIMARY KEY (account_id, kind);
ALTER TABLE ONLY accounts ADD CONSTRAINT uq_accounts_email_key UNIQUE (email_key);
ALTER TABLE ONLY accounts ADD CONSTRAINT uq_accounts_handle UNIQUE (handle);
ALTER TABLE ONLY accounts ADD CONSTRAINT uq_accounts_learner_id UNIQUE (learner_id);
ALTER TABLE ONLY comments ADD CONSTRAINT uq_comments_author_id_key UNIQUE (author_id, key);
ALTER TABLE ONLY identities ADD CONSTRAINT uq_identities_account_id_issuer UNIQUE (account_id, issuer);
ALTER TABLE ONLY lesson_votes ADD CONSTRAINT uq_lesson_votes_id UNIQUE (id);
ALTER TABLE ONLY notifications ADD CONSTRAINT uq_notifications_account_id_kind_subject UNIQUE (account_id, kind, subject);
ALTER TABLE ONLY problems ADD CONSTRAINT uq_problems_key UNIQUE (key);
ALTER TABLE ONLY sign_ins ADD CONSTRAINT uq_sign_ins_public_id UNIQUE (public_id);
CREATE INDEX ix_comment_reactions_account_id ON comment_reactions USING btree (account_id);
CREATE INDEX ix_comment_reports_account_id ON comment_reports USING btree (account_id);
CREATE INDEX ix_comments_author_id ON comments USING btree (author_id, id);
CREATE INDEX ix_comments_held ON comments USING btree (id) WHERE ((state)::text = 'held'::text);
CREATE INDEX ix_comments_pinned ON comments USING btree (lesson, cell, id) WHERE pinned;
CREATE INDEX ix_comments_place ON comments USING btree (lesson, cell, id) WHERE (thread_id IS NULL);
CREATE INDEX ix_comments_renderer ON comments USING btree (renderer);
CREATE INDEX ix_comments_reported ON comments USING btree (id) WHERE (reports > 0);
CREATE INDEX ix_comments_thread_id ON comments USING btree (thread_id, id) WHERE (thread_id IS NOT NULL);
CREATE INDEX ix_earlier_handles_account_id ON earlier_handles USING btree (account_id);
CREATE INDEX ix_handshakes_expires_at ON handshakes USING btree (expires_at);
CREATE INDEX ix_identities_account_id ON identities USING btree (account_id);
CREATE INDEX ix_ledger_learner_id_at ON ledger USING btree (learner_id, at);
CREATE INDEX ix_lesson_votes_lesson ON lesson_votes USING btree (lesson, helpful);
CREATE INDEX ix_lesson_votes_said ON lesson_votes USING btree (id) WHERE ((sentence)::text <> ''::text);
CREATE INDEX ix_lesson_votes_said_of ON lesson_votes USING btree (lesson, id) WHERE ((sentence)::text <> ''::text);
CREATE INDEX ix_mail_links_account_id ON mail_links USING btree (account_id);
CREATE INDEX ix_merged_visitors_account_id ON merged_visitors USING btree (account_id);
CREATE INDEX ix_notifications_account_id ON notifications USING btree (account_id, id);
CREATE INDEX ix_notifications_actor_id ON notifications USING btree (actor_id);
CREATE INDEX ix_notifications_created_at ON notifications USING btree (created_at);
CREATE INDEX ix_notifications_subject ON notifications USING btree (subject);
CREATE INDEX ix_notifications_unread ON notifications USING btree (account_id) WHERE (read_at IS NULL);
CREATE INDEX ix_notifications_waiting ON notifications USING btree (created_at) WHERE ((read_at IS NULL) AND (mailed_at IS NULL));
CREATE INDEX ix_outbox_account_id ON outbox USING btree (account_id);
CREATE INDEX ix_outbox_state_due_at ON outbox USING btree (state, due_at);
CREATE INDEX ix_passkeys_account_id ON passkeys USING btree (account_id);
CREATE INDEX ix_problems_kind ON problems USING btree (kind, id);
CREATE INDEX ix_problems_learner_id ON problems USING btree (learner_id);
CREATE INDEX ix_problems_lesson ON problems USING btree (lesson, id);
CREATE INDEX ix_problems_open ON problems USING btree (id) WHERE (handled_at IS NULL);
CREATE INDEX ix_runs_session_id ON runs USING btree (session_id);
CREATE INDEX ix_runs_state ON runs USING btree (state);
CREATE INDEX ix_runs_unpruned ON runs USING btree (finished_at) WHERE (pruned_at IS NULL);
CREATE INDEX ix_runs_visitor_lesson ON runs USING btree (visitor_id, lesson, created_at);
CREATE INDEX ix_runs_visitor_stored ON runs USING btree (visitor_id, stored_bytes);
CREATE INDEX ix_sign_ins_account_id ON sign_ins USING btree (account_id);
ALTER TABLE ONLY comment_reactions ADD CONSTRAINT fk_comment_reactions_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY comment_reactions ADD CONSTRAINT fk_comment_reactions_comment_id_comments FOREIGN KEY (comment_id) REFERENCES comments(id) ON DELETE CASCADE;
ALTER TABLE ONLY comment_reports ADD CONSTRAINT fk_comment_reports_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY comment_reports ADD CONSTRAINT fk_comment_reports_comment_id_comments FOREIGN KEY (comment_id) REFERENCES comments(id) ON DELETE CASCADE;
ALTER TABLE ONLY comment_versions ADD CONSTRAINT fk_comment_versions_comment_id_comments FOREIGN KEY (comment_id) REFERENCES comments(id) ON DELETE CASCADE;
ALTER TABLE ONLY comments ADD CONSTRAINT fk_comments_author_id_accounts FOREIGN KEY (author_id) REFERENCES accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY comments ADD CONSTRAINT fk_comments_moderated_by_accounts FOREIGN KEY (moderated_by) REFERENCES accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY comments ADD CONSTRAINT fk_comments_thread_id_comments FOREIGN KEY (thread_id) REFERENCES comments(id) ON DELETE CASCADE;
ALTER TABLE ONLY earlier_handles ADD CONSTRAINT fk_earlier_handles_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY handshakes ADD CONSTRAINT fk_handshakes_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY identities ADD CONSTRAINT fk_identities_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY mail_links ADD CONSTRAINT fk_mail_links_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY merged_visitors ADD CONSTRAINT fk_merged_visitors_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY notifications ADD CONSTRAINT fk_notifications_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY notifications ADD CONSTRAINT fk_notifications_actor_id_accounts FOREIGN KEY (actor_id) REFERENCES accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY outbox ADD CONSTRAINT fk_outbox_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY passkeys ADD CONSTRAINT fk_passkeys_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY problems ADD CONSTRAINT fk_problems_handled_by_accounts FOREIGN KEY (handled_by) REFERENCES accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY run_events ADD CONSTRAINT fk_run_events_run_id_runs FOREIGN KEY (run_id) REFERENCES runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY sign_ins ADD CONSTRAINT fk_sign_ins_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY unmailed_kinds ADD CONSTRAINT fk_unmailed_kinds_account_id_accounts FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE;
