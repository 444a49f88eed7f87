INSERT INTO public.auth_user (id, password, last_login, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined) VALUES
	(1, '!atEis3caT7aJigc7qihUU2encDcux8Xw2DKXyMRi', NULL, true, 'admin', '', '', '', true, true, '2026-11-22 16:36:57.538312+00'),
	(2, '!oauhkWVDMFkCAocrtqGudBLSLGHihJikpUIV1dCE', NULL, false, 'ichiro', '', '', '', false, true, '2026-11-22 16:36:57.540136+00');
INSERT INTO public.runs_configuration (id, slug, name, description, settings, initdb_options, content_hash, created_at, created_by_id, origin, written_for) VALUES
	(1, 'fixed-point-small', 'Fixed-point observation, small machine', 'After the settings of the WG1 reports; all data of a small scale in memory.', '{"work_mem": "16MB", "autovacuum": "off", "log_lock_waits": "on", "shared_buffers": "512MB", "log_checkpoints": "on", "max_connections": "500", "checkpoint_timeout": "60min", "maintenance_work_mem": "256MB", "checkpoint_completion_target": "0.9"}', '[]', 'd59166cb31b6f9ffe5db2d6265ba99d5281844e9131c283cfa6956804e2e5398', '2026-11-22 16:36:57.966455+00', NULL, 'built_in', '');
INSERT INTO public.runs_configurationrevision (id, number, written_for, settings, initdb_options, content_hash, created_at, configuration_id, created_by_id) VALUES
	(1, 1, '', '{"work_mem": "16MB", "autovacuum": "off", "log_lock_waits": "on", "shared_buffers": "512MB", "log_checkpoints": "on", "max_connections": "500", "checkpoint_timeout": "60min", "maintenance_work_mem": "256MB", "checkpoint_completion_target": "0.9"}', '[]', 'd59166cb31b6f9ffe5db2d6265ba99d5281844e9131c283cfa6956804e2e5398', '2026-11-22 16:36:57.969223+00', 1, NULL);
INSERT INTO public.runs_project (id, slug, name, is_public, created_at) VALUES
	(1, 'secret', 'Secret', false, '2026-11-22 16:36:57.546513+00');
INSERT INTO public.runs_scenario (id, slug, title, description, runnable) VALUES
	(1, 'cpu-cores', 'CPU cores', 'How the throughput of a fixed number of clients grows with the number of cores.', false),
	(2, 'partitioning', 'Partitioning', 'Inserting into, searching and maintaining a table in many partitions.', false),
	(3, 'storage-placement', 'Storage placement', 'What it brings to put WAL, indexes, tables or everything on a fast device.', false),
	(4, 'scale-out', 'Scale-out', 'Throughput of one database on one to several nodes.', false),
	(5, 'operating-systems', 'Operating systems', 'The same load on several operating systems, and settings that depend on them.', false),
	(6, 'parallel-query', 'Parallel query', 'Elapsed time of analytical queries by version and number of workers.', false),
	(7, 'full-text-search', 'Full-text search', 'Searching Japanese text with several index types, alone and beside inserts.', false),
	(8, 'replication', 'Replication', 'What synchronous and asynchronous standbys cost the primary.', false),
	(9, 'foreign-tables', 'Foreign tables', 'Reading and writing local tables against tables of other servers.', false),
	(10, 'block-size', 'Block size', 'Loading and analysing data with blocks of 8, 16 and 32 kB.', false),
	(11, 'long-run-stability', 'Long-run stability', 'Throughput over hours of load, with and without autovacuum and its cost delay.', false),
	(12, 'profile', 'Profile', 'Where the time goes: functions on the processor, and system calls.', false),
	(13, 'storage-bandwidth', 'Storage bandwidth', 'What a storage device writes by itself, by the interval between flushes.', false),
	(14, 'fixed-point-read', 'Fixed-point read', 'The yearly fixed-point observation: how many range counts over 10,000 rows a version answers, from one client to many, with all data in memory.', true),
	(15, 'fixed-point-update', 'Fixed-point update', 'The yearly fixed-point observation: how many single-row updates a version commits, from one client to many, on a freshly loaded cluster for each run and without a checkpoint.', true),
	(16, 'page-checksums', 'Page checksums', 'What page checksums cost a reading load: the fixed-point range counts on clusters made with and without them. Choose a scale that does not fit into shared_buffers to see pages being verified.', true);
INSERT INTO public.runs_topology (id, slug, name, kind, created_at) VALUES
	(1, 'single-db2', 'db2', 'single', '2026-11-22 16:36:58.043+00');
INSERT INTO public.runs_campaign (id, slug, title, question, origin, state, factors, parameters, repeats, seed, created_at, created_by_id, configuration_id, scenario_id, topology_id, expected_every, missing_told_at, most_attempts, most_repeats, paused_at, priority, question_ja, title_ja, tracked_ref, wanted_half_width, year, configuration_revision_id, project_id, treatment, missing_mailed_at) VALUES
	(1, 'done', 'done', '', 'executed', 'finished', '{"clients": [1, 2, 4], "version": ["16.14", "18.4"]}', '{}', 2, 0, '2026-11-22 16:36:57.586194+00', NULL, NULL, 14, NULL, NULL, NULL, 3, NULL, NULL, 0, '', '', '', NULL, NULL, NULL, NULL, '{}', NULL),
	(2, 'queued', 'queued', '', 'executed', 'queued', '{"clients": [1], "version": ["18.4"]}', '{"scale": 1, "duration": 1}', 2, 810391282, '2026-11-22 16:36:58.061734+00', NULL, 1, 14, 1, NULL, NULL, 3, NULL, NULL, 0, '', '', '', NULL, NULL, 1, NULL, '{}', NULL),
	(3, 'uploaded', 'uploaded', '', 'uploaded', 'finished', '{"clients": [1]}', '{}', 2, 0, '2026-11-22 16:36:58.314365+00', NULL, NULL, 14, NULL, NULL, NULL, 3, NULL, NULL, 0, '', '', '', NULL, NULL, NULL, NULL, '{}', NULL);
INSERT INTO public.runs_environment (id, fingerprint, os_name, kernel, architecture, facts, created_at, slug) VALUES
	(1, 'Debian 13', 'Debian 13', '6.12', '', '{}', '2026-11-22 16:36:57.574803+00', '');
INSERT INTO public.runs_hardwareprofile (id, fingerprint, name, cpu_model, sockets, cores, threads, memory_bytes, virtualization, facts, created_at, slug) VALUES
	(1, 'two-core', 'two-core', 'EPYC', NULL, 2, NULL, 8589934592, '', '{}', '2026-11-22 16:36:57.565433+00', '');
INSERT INTO public.runs_sshkey (id, name, public_key, private_key_encrypted, created_at) VALUES
	(1, 'default', 'ssh-ed25519 AAAA', '\x78', '2026-11-22 16:36:57.559926+00');
INSERT INTO public.runs_server (id, slug, name, address, port, username, base_dir, bindirs, host_key, offered_host_key, state, problem_code, problem, problem_remedy, free_bytes, checked_at, created_at, environment_id, hardware_id, ssh_key_id, jump_id, maintenance_reason, maintenance_since, maintenance_until, needs_sweep, privileges, sweep_after) VALUES
	(1, 'db1', 'db1', '192.0.2.1', 22, 'postgres', '/srv/benchlab', '[]', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDuATmcdEPUMDzB5lQRyDR4cNhyOOPzyBtaCbKYYlbJU', '', 'ready', '', '', '', NULL, NULL, '2026-11-22 16:36:57.577231+00', 1, 1, 1, NULL, '', NULL, NULL, false, '[]', NULL),
	(2, 'db2', 'db2', '192.0.2.1', 22, 'postgres', '/srv/benchlab', '[]', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDuATmcdEPUMDzB5lQRyDR4cNhyOOPzyBtaCbKYYlbJU', '', 'ready', '', '', '', NULL, NULL, '2026-11-22 16:36:57.934457+00', 1, 1, 1, NULL, '', NULL, NULL, false, '[]', NULL);
INSERT INTO public.runs_installation (id, bindir, version, version_num, vendor, configure_options, pgbench_version_num, has_psql, discovered_at, removed_at, server_id, block_size, cflags, extensions, wal_segment_size) VALUES
	(1, '/usr/lib/postgresql/18.4/bin', '18.4', 180004, '', '', 180004, true, '2026-11-22 16:36:57.935686+00', NULL, 2, NULL, '', '[]', NULL);
INSERT INTO public.runs_cell (id, ordinal, levels, key, version, version_num, campaign_id, installation_id, series_key, revision_id) VALUES
	(1, 1, '{"clients": 1, "version": "16.14"}', '{"clients": 1, "version": "16.14"}', '16.14', 160014, 1, NULL, '', NULL),
	(2, 2, '{"clients": 2, "version": "16.14"}', '{"clients": 2, "version": "16.14"}', '16.14', 160014, 1, NULL, '', NULL),
	(3, 3, '{"clients": 4, "version": "16.14"}', '{"clients": 4, "version": "16.14"}', '16.14', 160014, 1, NULL, '', NULL),
	(4, 4, '{"clients": 1, "version": "18.4"}', '{"clients": 1, "version": "18.4"}', '18.4', 180004, 1, NULL, '', NULL),
	(5, 5, '{"clients": 2, "version": "18.4"}', '{"clients": 2, "version": "18.4"}', '18.4', 180004, 1, NULL, '', NULL),
	(6, 6, '{"clients": 4, "version": "18.4"}', '{"clients": 4, "version": "18.4"}', '18.4', 180004, 1, NULL, '', NULL),
	(7, 1, '{"clients": 1, "version": "18.4"}', '{"clients": 1, "version": "18.4"}', '18.4', 180004, 2, 1, '', NULL),
	(8, 1, '{"clients": 1}', '{"clients": 1}', '', NULL, 3, NULL, '', NULL);
INSERT INTO public.runs_settingssnapshot (id, content_hash, settings, created_at) VALUES
	(1, 's', '{"work_mem": {"unit": "kB", "setting": "4096"}}', '2026-11-22 16:36:57.892042+00');
INSERT INTO public.runs_run (id, repeat, "position", origin, state, code, message, remedy, attempt, cancel_requested_at, plan, server_version, tool_name, tool_version, quality, queued_at, started_at, finished_at, campaign_id, cell_id, cluster_id, environment_id, hardware_id, server_id, settings_id, external_id, labels) VALUES
	(1, 1, 1, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.602945+00', '2026-11-22 16:36:47.683452+00', '2026-11-22 16:36:57.683452+00', 1, 1, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(2, 2, 2, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.607881+00', '2026-11-22 16:36:47.714142+00', '2026-11-22 16:36:57.714142+00', 1, 1, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(3, 1, 3, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.620583+00', '2026-11-22 16:36:47.731156+00', '2026-11-22 16:36:57.731156+00', 1, 2, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(4, 2, 4, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.62671+00', '2026-11-22 16:36:47.746764+00', '2026-11-22 16:36:57.746764+00', 1, 2, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(5, 1, 5, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.632326+00', '2026-11-22 16:36:47.766987+00', '2026-11-22 16:36:57.766987+00', 1, 3, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(6, 2, 6, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.636698+00', '2026-11-22 16:36:47.773671+00', '2026-11-22 16:36:57.773671+00', 1, 3, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(7, 1, 7, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.64431+00', '2026-11-22 16:36:47.793804+00', '2026-11-22 16:36:57.793804+00', 1, 4, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(8, 2, 8, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.646484+00', '2026-11-22 16:36:47.799792+00', '2026-11-22 16:36:57.799792+00', 1, 4, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(9, 1, 9, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.656849+00', '2026-11-22 16:36:47.814653+00', '2026-11-22 16:36:57.814653+00', 1, 5, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(10, 2, 10, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.664263+00', '2026-11-22 16:36:47.83141+00', '2026-11-22 16:36:57.83141+00', 1, 5, NULL, NULL, NULL, 1, NULL, '', '{}'),
	(12, 2, 12, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.67274+00', '2026-11-22 16:36:47.861638+00', '2026-11-22 16:36:57.861638+00', 1, 6, NULL, NULL, NULL, 1, 1, '', '{}'),
	(11, 1, 11, 'executed', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:57.669272+00', '2026-11-22 16:36:47.848496+00', '2026-11-22 16:36:57.848496+00', 1, 6, NULL, NULL, NULL, 1, 1, '', '{}'),
	(13, 1, 1, 'executed', 'queued', '', '', '', 1, NULL, '{"host": "192.0.2.1", "port": 22, "bindir": "/usr/lib/postgresql/18.4/bin", "levels": {"clients": 1, "version": "18.4"}, "run_id": 13, "base_dir": "/srv/benchlab", "campaign": "queued", "scenario": "fixed-point-read", "settings": {"work_mem": "16MB", "autovacuum": "off", "log_lock_waits": "on", "shared_buffers": "512MB", "log_checkpoints": "on", "max_connections": "500", "checkpoint_timeout": "60min", "maintenance_work_mem": "256MB", "checkpoint_completion_target": "0.9"}, "username": "postgres", "treatment": {"profile": false, "governor": "", "cold_cache": false, "server_cpus": "", "pgbench_cpus": ""}, "generators": [], "parameters": {"scale": 1, "duration": 1}, "translated": [], "cluster_key": "2-1cdb0a8a9ce8", "psql_bindir": "/usr/lib/postgresql/18.4/bin", "version_num": 180004, "template_key": "", "client_bindir": "/usr/lib/postgresql/18.4/bin", "initdb_options": [], "client_version_num": 180004}', '', '', '', '[]', '2026-11-22 16:36:58.069329+00', NULL, NULL, 2, 7, NULL, 1, 1, 2, NULL, '', '{}'),
	(14, 2, 2, 'executed', 'queued', '', '', '', 1, NULL, '{"host": "192.0.2.1", "port": 22, "bindir": "/usr/lib/postgresql/18.4/bin", "levels": {"clients": 1, "version": "18.4"}, "run_id": 14, "base_dir": "/srv/benchlab", "campaign": "queued", "scenario": "fixed-point-read", "settings": {"work_mem": "16MB", "autovacuum": "off", "log_lock_waits": "on", "shared_buffers": "512MB", "log_checkpoints": "on", "max_connections": "500", "checkpoint_timeout": "60min", "maintenance_work_mem": "256MB", "checkpoint_completion_target": "0.9"}, "username": "postgres", "treatment": {"profile": false, "governor": "", "cold_cache": false, "server_cpus": "", "pgbench_cpus": ""}, "generators": [], "parameters": {"scale": 1, "duration": 1}, "translated": [], "cluster_key": "2-1cdb0a8a9ce8", "psql_bindir": "/usr/lib/postgresql/18.4/bin", "version_num": 180004, "template_key": "", "client_bindir": "/usr/lib/postgresql/18.4/bin", "initdb_options": [], "client_version_num": 180004}', '', '', '', '[]', '2026-11-22 16:36:58.069362+00', NULL, NULL, 2, 7, NULL, 1, 1, 2, NULL, '', '{}'),
	(15, 1, 1, 'uploaded', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:58.335115+00', '2026-11-22 16:36:48.350401+00', '2026-11-22 16:36:58.350401+00', 3, 8, NULL, NULL, NULL, NULL, NULL, '', '{}'),
	(16, 2, 2, 'uploaded', 'finished', '', '', '', 1, NULL, NULL, '', '', '', '[]', '2026-11-22 16:36:58.33782+00', '2026-11-22 16:36:48.37934+00', '2026-11-22 16:36:58.37934+00', 3, 8, NULL, NULL, NULL, NULL, NULL, '', '{}');
INSERT INTO public.runs_artifact (id, name, media_type, size, sha256, created_at, run_id) VALUES
	(1, 'pgbench', 'text/plain', 10, '0000000000000000000000000000000000000000000000000000000000000000', '2026-11-22 16:36:57.921972+00', 12),
	(2, 'nameless', 'text/plain', 10, '../x', '2026-11-22 16:36:57.9233+00', 12);
INSERT INTO public.runs_metric (id, name, unit, direction, title, title_ja) VALUES
	(1, 'tps', 'tps', 'higher', 'Transactions per second', ''),
	(2, 'latency_average', 'ms', 'lower', 'Average latency', ''),
	(3, 'latency_p50', 'ms', 'lower', 'Latency, median', ''),
	(4, 'latency_p90', 'ms', 'lower', 'Latency, 90th percentile', ''),
	(5, 'latency_p95', 'ms', 'lower', 'Latency, 95th percentile', ''),
	(6, 'latency_p99', 'ms', 'lower', 'Latency, 99th percentile', ''),
	(7, 'latency_p99_9', 'ms', 'lower', 'Latency, 99.9th percentile', ''),
	(8, 'latency_stddev', 'ms', 'lower', 'Latency, standard deviation', ''),
	(9, 'initial_connection_time', 'ms', 'lower', 'Initial connection time', ''),
	(10, 'transactions', 'transactions', 'neutral', 'Transactions processed', ''),
	(11, 'cpu_idle', '%', 'neutral', 'CPU idle', ''),
	(12, 'generator_cpu', 'processors', 'neutral', 'Processors used by the load generator', '');
INSERT INTO public.runs_cellsummary (id, n, median, minimum, maximum, mean, log_mean, log_variance, cell_id, metric_id) VALUES
	(1, 2, 999, 998, 1000, 999, 6.906754277646801, 2.0040073466901743e-06, 1, 1),
	(2, 2, 1998, 1996, 2000, 1998, 7.599901458206746, 2.0040073466901743e-06, 2, 1),
	(3, 2, 3996, 3992, 4000, 3996, 8.293048638766692, 2.004007346691952e-06, 3, 1),
	(4, 2, 999, 998, 1000, 999, 6.906754277646801, 2.0040073466901743e-06, 4, 1),
	(5, 2, 1998, 1996, 2000, 1998, 7.599901458206746, 2.0040073466901743e-06, 5, 1),
	(6, 2, 3996, 3992, 4000, 3996, 8.293048638766692, 2.004007346691952e-06, 6, 1),
	(7, 2, 999, 998, 1000, 999, 6.906754277646801, 2.0040073466901743e-06, 8, 1);
INSERT INTO public.runs_command (id, attempt, ordinal, step, host, argv, stdin, exit_status, started_at, finished_at, stdout, stderr, truncated, run_id) VALUES
	(1, 1, 1, 'measure', '192.0.2.1', '["pgbench", "-n"]', '', NULL, NULL, NULL, '', '', false, 12),
	(2, 1, 1, 'measure', '192.0.2.1', '["pgbench", "-n"]', '', NULL, NULL, NULL, '', '', false, 11);
INSERT INTO public.runs_measurement (id, value, n, statistic, metric_id, run_id) VALUES
	(1, 998, 1, 'single', 1, 1),
	(2, 1000, 1, 'single', 1, 2),
	(3, 1996, 1, 'single', 1, 3),
	(4, 2000, 1, 'single', 1, 4),
	(5, 3992, 1, 'single', 1, 5),
	(6, 4000, 1, 'single', 1, 6),
	(7, 998, 1, 'single', 1, 7),
	(8, 1000, 1, 'single', 1, 8),
	(9, 1996, 1, 'single', 1, 9),
	(10, 2000, 1, 'single', 1, 10),
	(11, 3992, 1, 'single', 1, 11),
	(12, 4000, 1, 'single', 1, 12),
	(13, 998, 1, 'single', 1, 15),
	(14, 1000, 1, 'single', 1, 16);
INSERT INTO public.runs_project_members (id, project_id, user_id) VALUES
	(1, 1, 2);
INSERT INTO public.runs_runevent (id, at, from_state, to_state, code, message, attempt, run_id) VALUES
	(1, '2026-11-22 16:36:57.881159+00', 'queued', 'claimed', 'claimed', '', 1, 12),
	(2, '2026-11-22 16:36:57.900025+00', 'queued', 'claimed', 'claimed', '', 1, 11);
INSERT INTO public.runs_series (id, name, unit, start, "interval", "values", run_id) VALUES
	(1, 'tps', 'tps', 1, 1, '{1,NULL}', 12),
	(2, 'tps', 'tps', 1, 1, '{1,NULL}', 11);
INSERT INTO public.runs_token (id, name, prefix, secret_hash, scopes, created_at, expires_at, revoked_at, last_used_at, created_by_id, project_id) VALUES
	(1, 'ci', '21e710ddbe4f', 'bfe397fd696247fdb25338eb0885470afcc135e17642a0258f2beb3cf942a67b', '["read", "upload"]', '2026-11-22 16:36:58.404927+00', NULL, NULL, NULL, 1, 1);
INSERT INTO public.runs_topologynode (id, role, ordinal, server_id, topology_id) VALUES
	(1, 'database', 1, 2, 1),
	(2, 'load_generator', 1, 2, 1);
SELECT pg_catalog.setval('public.auth_group_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_group_permissions_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_user_groups_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_user_id_seq', 2, true);
SELECT pg_catalog.setval('public.auth_user_user_permissions_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_annotation_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_artifact_id_seq', 2, true);
SELECT pg_catalog.setval('public.runs_campaign_id_seq', 3, true);
SELECT pg_catalog.setval('public.runs_cell_id_seq', 8, true);
SELECT pg_catalog.setval('public.runs_cellsummary_id_seq', 7, true);
SELECT pg_catalog.setval('public.runs_change_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_command_id_seq', 2, true);
SELECT pg_catalog.setval('public.runs_configuration_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_configurationrevision_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_discrepancy_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_environment_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_hardwareprofile_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_installation_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_instance_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_measurement_id_seq', 14, true);
SELECT pg_catalog.setval('public.runs_metric_id_seq', 12, true);
SELECT pg_catalog.setval('public.runs_preparedcluster_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_printedfigure_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_project_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_project_members_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_publishednode_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_publishedtable_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_revision_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_run_id_seq', 16, true);
SELECT pg_catalog.setval('public.runs_runevent_id_seq', 2, true);
SELECT pg_catalog.setval('public.runs_savedcomparison_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_scenario_id_seq', 16, true);
SELECT pg_catalog.setval('public.runs_schedule_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_scheduleevent_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_series_id_seq', 2, true);
SELECT pg_catalog.setval('public.runs_server_id_seq', 2, true);
SELECT pg_catalog.setval('public.runs_serverevent_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_settingssnapshot_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_source_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_sshkey_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_stalecell_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_token_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_topology_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_topologynode_id_seq', 2, true);
SELECT pg_catalog.setval('public.runs_upload_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_webhook_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_webhookdelivery_id_seq', 1, false);
