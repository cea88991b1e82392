BEGIN TRANSACTION;
CREATE TABLE calls (
	thread INTEGER NOT NULL, 
	call_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	PRIMARY KEY (thread, call_id, seq), 
	FOREIGN KEY(thread) REFERENCES threads (number) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "calls" VALUES(1,'c1',4);
CREATE TABLE metadata (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "metadata" VALUES('schema_version','1',1767603600000);
INSERT INTO "metadata" VALUES('created_at','1767603600000',1767603600000);
CREATE TABLE notes (
	thread INTEGER NOT NULL, 
	summary TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	turn_count INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	PRIMARY KEY (thread), 
	FOREIGN KEY(thread) REFERENCES threads (number) ON DELETE CASCADE
);
CREATE TABLE threads (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	last_seq INTEGER NOT NULL, 
	tally TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	UNIQUE (tenant, thread_id)
);
INSERT INTO "threads" VALUES(1,'acme','t1',6,'{"body":[{"user":2,"assistant":3,"tool":1},{"approximate":6},{"approximate":80}],"leading":[{},{},{}],"standing":[{},{},{}],"standing_seqs":[],"exchanges":2,"first_seq":1}',1767603600000,1767690000000);
INSERT INTO "threads" VALUES(2,'other','t1',1,'{"body":[{"user":1},{"approximate":1},{"approximate":11}],"leading":[{},{},{}],"standing":[{},{},{}],"standing_seqs":[],"exchanges":1,"first_seq":1}',1767690000000,1767690000000);
INSERT INTO "threads" VALUES(3,'acme','gone',2,'{"body":[{"user":1},{"approximate":1},{"approximate":7}],"leading":[{},{},{}],"standing":[{},{},{}],"standing_seqs":[],"exchanges":1,"first_seq":2}',1767690000000,1767690000000);
CREATE TABLE turns (
	thread INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	archived BOOLEAN DEFAULT 0 NOT NULL, 
	standing BOOLEAN NOT NULL, 
	call_seq INTEGER, 
	revision INTEGER NOT NULL, 
	role TEXT NOT NULL, 
	content TEXT, 
	body TEXT, 
	dump TEXT, 
	tokens TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (thread, archived, seq), 
	FOREIGN KEY(thread) REFERENCES threads (number) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "turns" VALUES(1,1,'q1',0,0,NULL,1,'user','Where did we buy the samovar?',NULL,NULL,'{"approximate":12}',1767603600000);
INSERT INTO "turns" VALUES(1,2,'a1',0,0,NULL,1,'assistant','At the flea market in Tula.',NULL,NULL,'{"approximate":13}',1767603600000);
INSERT INTO "turns" VALUES(1,3,'q2',0,0,NULL,1,'user','What does it weigh?',NULL,NULL,'{"approximate":9}',1767690000000);
INSERT INTO "turns" VALUES(1,4,'a2',0,0,NULL,1,'assistant',NULL,'{"tool_calls":[["c1","weigh",{"what":"samovar"},null]]}',NULL,'{"approximate":22}',1767690000000);
INSERT INTO "turns" VALUES(1,5,'r2',0,0,4,1,'tool','4.2 kg','{"tool_call_id":"c1"}',NULL,'{"approximate":10}',1767690000000);
INSERT INTO "turns" VALUES(1,6,'a3',0,0,NULL,2,'assistant','It weighs 4.3 kg.',NULL,NULL,'{"approximate":14}',1767690000000);
INSERT INTO "turns" VALUES(2,1,'q1',0,0,NULL,1,'user','Our samovar is a secret.',NULL,NULL,'{"approximate":11}',1767690000000);
INSERT INTO "turns" VALUES(3,2,'x2',0,0,NULL,1,'user','A new kettle',NULL,NULL,'{"approximate":7}',1767690000000);
INSERT INTO "turns" VALUES(3,1,'x1',1,0,NULL,1,'user','An old samovar',NULL,NULL,'{"approximate":8}',1767690000000);
CREATE UNIQUE INDEX turns_by_id ON turns (thread, id) WHERE archived = 0;
CREATE INDEX turns_by_call ON turns (thread, call_seq) WHERE call_seq IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('threads',3);
COMMIT;
