"""A load to try at once: statements of pgbench's tables."""

STATEMENTS = """\
SELECT abalance FROM pgbench_accounts WHERE aid = 4711;
SELECT abalance FROM pgbench_accounts WHERE aid = 99;
SELECT count(*) FROM pgbench_accounts;
SELECT bid, sum(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY bid;
WITH known AS (SELECT * FROM pgbench_accounts) SELECT abalance FROM known WHERE aid = 815;
SELECT count(*) FROM pgbench_accounts WHERE aid IN (1, 5, 7, 9, 11, 13, 15);
SELECT DISTINCT bid FROM pgbench_accounts;
SELECT a.aid, b.bbalance FROM pgbench_accounts AS a JOIN pgbench_branches AS b USING (bid)
 ORDER BY a.abalance DESC, a.aid LIMIT 10;
SELECT aid, row_number() OVER (ORDER BY aid) FROM pgbench_accounts LIMIT 100;
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 7 WHERE aid = 4711;
SELECT abalance FROM pgbench_accounts WHERE aid = 4711;
UPDATE pgbench_tellers SET tbalance = tbalance + 7 WHERE tid = 3;
UPDATE pgbench_branches SET bbalance = bbalance + 7 WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (3, 1, 4711, 7, now());
COMMIT;
"""
SCALE = 5
