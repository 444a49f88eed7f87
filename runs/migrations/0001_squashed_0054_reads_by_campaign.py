"""The tables as release 0.2 has them, but for partitions. An older release is updated to 0.2 first."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.db.models.lookups
import runs.models.measurements
import uuid
from django.conf import settings
from django.db import migrations, models

# The audit trail only grows.
AUDIT = """
CREATE FUNCTION runs_audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry of the audit trail stays as it is';
END
$$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON runs_auditentry
    FOR EACH ROW EXECUTE FUNCTION runs_audit_stays();
"""
# Runs have the version of their cell, in whole and as PostgreSQL's major version.
VERSIONS = r"""
CREATE FUNCTION runs_major(version text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(substring(version FROM '^(?:\d\.\d+|\d+)'), '')
$$;
CREATE FUNCTION runs_take_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT version, runs_major(version) INTO NEW.cell_version, NEW.cell_major
    FROM runs_cell WHERE id = NEW.cell_id;
    RETURN NEW;
END $$;
CREATE FUNCTION runs_give_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs_run SET cell_id = cell_id WHERE cell_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER run_takes_version BEFORE INSERT OR UPDATE OF cell_id ON runs_run
    FOR EACH ROW EXECUTE FUNCTION runs_take_version();
CREATE TRIGGER cell_gives_version AFTER UPDATE OF version ON runs_cell
    FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version)
    EXECUTE FUNCTION runs_give_version();
"""
# How many runs a campaign, and the whole lab, have in each state.
COUNTS = """
CREATE FUNCTION runs_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
        SELECT coalesce(campaign_id, 0), coalesce(origin, ''), state, count(*), false FROM made
        GROUP BY GROUPING SETS ((campaign_id, state), (origin, state));
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
        SELECT coalesce(campaign_id, 0), coalesce(origin, ''), state, -count(*), false FROM gone
        GROUP BY GROUPING SETS ((campaign_id, state), (origin, state));
    ELSE
        INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
        SELECT coalesce(campaign_id, 0), coalesce(origin, ''), state, sum(number), false
        FROM (SELECT campaign_id, origin, state, 1 AS number FROM made
              UNION ALL SELECT campaign_id, origin, state, -1 FROM gone) AS changed
        GROUP BY GROUPING SETS ((campaign_id, state), (origin, state)) HAVING sum(number) <> 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER run_made_counts AFTER INSERT ON runs_run
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION runs_count();
CREATE TRIGGER run_changed_counts AFTER UPDATE ON runs_run
    REFERENCING OLD TABLE AS gone NEW TABLE AS made FOR EACH STATEMENT
    EXECUTE FUNCTION runs_count();
CREATE TRIGGER run_gone_counts AFTER DELETE ON runs_run
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION runs_count();
"""
CHANGES = """
CREATE FUNCTION runs_take_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT campaign_id INTO NEW.campaign_id FROM runs_cell WHERE id = NEW.cell_id;
    RETURN NEW;
END $$;
CREATE TRIGGER change_takes_campaign BEFORE INSERT OR UPDATE OF cell_id, campaign_id ON runs_change
    FOR EACH ROW EXECUTE FUNCTION runs_take_campaign();
"""
# A version says its major version: without this PostgreSQL takes both for a coincidence.
STATISTICS = "CREATE STATISTICS run_versions (dependencies) ON cell_version, cell_major FROM runs_run"


class Migration(migrations.Migration):

    replaces = [('runs', '0001_initial'), ('runs', '0002_archive_and_uploads'), ('runs', '0003_treatments_and_indexes'), ('runs', '0004_house'), ('runs', '0005_access'), ('runs', '0006_inference'), ('runs', '0007_evidence'), ('runs', '0008_factors'), ('runs', '0009_workloads'), ('runs', '0010_gate'), ('runs', '0011_records'), ('runs', '0012_operations'), ('runs', '0013_scale'), ('runs', '0014_seals'), ('runs', '0015_arrangements'), ('runs', '0016_audit'), ('runs', '0017_archive'), ('runs', '0018_reads'), ('runs', '0019_counts'), ('runs', '0020_bisections'), ('runs', '0021_server_checks'), ('runs', '0022_workload_trials'), ('runs', '0023_themes'), ('runs', '0024_house_in_steps'), ('runs', '0025_access_in_steps'), ('runs', '0026_rules'), ('runs', '0027_judge_again'), ('runs', '0028_traces'), ('runs', '0029_inference_in_steps'), ('runs', '0030_bisection_answers'), ('runs', '0031_builds'), ('runs', '0032_sites'), ('runs', '0033_evidence_in_steps'), ('runs', '0034_factors_in_steps'), ('runs', '0035_figure_node'), ('runs', '0036_seals_in_steps'), ('runs', '0037_unsealed'), ('runs', '0038_cell_order'), ('runs', '0041_mailing'), ('runs', '0042_sought_rows'), ('runs', '0045_reads_in_steps'), ('runs', '0046_counts_in_steps'), ('runs', '0047_unsealed_in_steps'), ('runs', '0048_runs_of_nine'), ('runs', '0050_packs'), ('runs', '0051_run_by_campaign'), ('runs', '0052_known_choices'), ('runs', '0053_newest_of_each'), ('runs', '0054_reads_by_campaign')]

    initial = True

    dependencies = [
        ('auth', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='Configuration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=100, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('description', models.TextField(blank=True, verbose_name='description')),
                ('settings', models.JSONField(default=dict)),
                ('initdb_options', models.JSONField(default=list)),
                ('content_hash', models.CharField(db_index=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('origin', models.CharField(choices=[('built_in', 'built in'), ('published', 'published'), ('own', 'own')], default='own', max_length=10)),
                ('written_for', models.CharField(blank=True, max_length=8, verbose_name='written for')),
                ('name_ja', models.CharField(blank=True, db_default='', default='', max_length=200)),
            ],
            options={
                'ordering': ['name', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('origin__in', ['built_in', 'published', 'own'])), name='configuration_origin_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Environment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('fingerprint', models.CharField(max_length=64, unique=True)),
                ('os_name', models.CharField(blank=True, max_length=200, verbose_name='operating system')),
                ('kernel', models.CharField(blank=True, max_length=200, verbose_name='kernel')),
                ('architecture', models.CharField(blank=True, max_length=40, verbose_name='architecture')),
                ('facts', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('slug', models.SlugField(blank=True, max_length=120)),
            ],
            options={
                'ordering': ['os_name', 'pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('slug', ''), _negated=True), fields=('slug',), name='environment_slug_once')],
            },
        ),
        migrations.CreateModel(
            name='HardwareProfile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('fingerprint', models.CharField(max_length=64, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('cpu_model', models.CharField(blank=True, max_length=200, verbose_name='CPU model')),
                ('sockets', models.PositiveIntegerField(null=True, verbose_name='sockets')),
                ('cores', models.PositiveIntegerField(null=True, verbose_name='cores')),
                ('threads', models.PositiveIntegerField(null=True, verbose_name='hardware threads')),
                ('memory_bytes', models.BigIntegerField(null=True, verbose_name='memory')),
                ('virtualization', models.CharField(blank=True, max_length=60, verbose_name='virtualisation')),
                ('facts', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('slug', models.SlugField(blank=True, max_length=120)),
                ('memory_printed', models.CharField(blank=True, db_default='', default='', max_length=20)),
                ('name_ja', models.CharField(blank=True, db_default='', default='', max_length=200)),
            ],
            options={
                'ordering': ['name', 'pk'],
                'indexes': [models.Index(fields=['name', 'id'], name='hardware_by_name')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('slug', ''), _negated=True), fields=('slug',), name='hardware_slug_once')],
            },
        ),
        migrations.CreateModel(
            name='Metric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=80, unique=True)),
                ('unit', models.CharField(blank=True, max_length=40)),
                ('direction', models.CharField(choices=[('higher', 'higher is better'), ('lower', 'lower is better'), ('neutral', 'neither')], max_length=10)),
                ('title', models.CharField(max_length=200)),
                ('title_ja', models.CharField(blank=True, max_length=200)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('direction__in', ['higher', 'lower', 'neutral'])), name='metric_direction_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Scenario',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('title', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True)),
                ('runnable', models.BooleanField(default=False)),
            ],
            options={
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='SettingsSnapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content_hash', models.CharField(max_length=64, unique=True)),
                ('settings', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='SSHKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True)),
                ('public_key', models.TextField()),
                ('private_key_encrypted', models.BinaryField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Topology',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=100, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('kind', models.CharField(choices=[('single', 'single server'), ('client', 'database and load generator apart'), ('streaming', 'streaming replication'), ('logical', 'logical replication'), ('fdw', 'foreign tables'), ('sharded', 'sharded'), ('pooled', 'connection pool'), ('varied', 'several arrangements')], max_length=20, verbose_name='kind')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('name_ja', models.CharField(blank=True, db_default='', default='', max_length=200)),
            ],
            options={
                'verbose_name_plural': 'topologies',
                'ordering': ['name', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['single', 'client', 'streaming', 'logical', 'fdw', 'sharded', 'pooled', 'varied'])), name='topology_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Instance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.UUIDField(default=uuid.uuid4, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('judged_rules', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('unsealed_since', models.DateTimeField(null=True)),
                ('packed_up_to', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='one_instance')],
            },
        ),
        migrations.CreateModel(
            name='ConfigurationRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('written_for', models.CharField(blank=True, max_length=8)),
                ('settings', models.JSONField(default=dict)),
                ('initdb_options', models.JSONField(default=list)),
                ('content_hash', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('configuration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='runs.configuration')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['configuration', '-number'],
                'constraints': [models.UniqueConstraint(fields=('configuration', 'number'), name='configuration_revision_once')],
            },
        ),
        migrations.CreateModel(
            name='SavedComparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=120, unique=True)),
                ('title', models.CharField(max_length=200, verbose_name='title')),
                ('note', models.TextField(blank=True, verbose_name='note')),
                ('query', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='Source',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('title', models.CharField(max_length=300, verbose_name='title')),
                ('title_ja', models.CharField(blank=True, max_length=300)),
                ('publisher', models.CharField(blank=True, max_length=200, verbose_name='publisher')),
                ('publisher_ja', models.CharField(blank=True, max_length=200)),
                ('year', models.PositiveSmallIntegerField(verbose_name='year')),
                ('published', models.CharField(blank=True, max_length=20, verbose_name='published')),
                ('language', models.CharField(default='ja', max_length=8)),
                ('url', models.URLField(blank=True)),
                ('licence', models.CharField(blank=True, max_length=200, verbose_name='licence')),
                ('licence_url', models.URLField(blank=True)),
                ('summary', models.TextField(blank=True)),
                ('summary_ja', models.TextField(blank=True)),
                ('content_hash', models.CharField(blank=True, max_length=64)),
                ('loaded_at', models.DateTimeField(auto_now=True)),
                ('corrections', models.JSONField(default=list)),
                ('data_version', models.CharField(blank=True, max_length=20, verbose_name='version of the data')),
                ('transcribed_on', models.DateField(null=True, verbose_name='transcribed on')),
                ('traces', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
            ],
            options={
                'ordering': ['year', 'slug'],
            },
        ),
        migrations.CreateModel(
            name='Workload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('description', models.TextField(blank=True, verbose_name='description')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='WorkloadVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('scripts', models.JSONField()),
                ('variables', models.JSONField(default=dict)),
                ('init_options', models.CharField(blank=True, max_length=200, verbose_name='options of pgbench -i')),
                ('init_sql', models.TextField(blank=True, verbose_name='SQL before the load')),
                ('has_own_tables', models.BooleanField(default=False, verbose_name='own tables')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('workload', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='runs.workload')),
            ],
            options={
                'ordering': ['workload', '-number'],
                'constraints': [models.UniqueConstraint(fields=('workload', 'number'), name='workload_version_once')],
            },
        ),
        migrations.CreateModel(
            name='SealRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('sealed', 'sealed'), ('amended', 'amended'), ('withdrawn', 'withdrawn'), ('restored', 'restored')], default='sealed', max_length=10)),
                ('run', models.BigIntegerField()),
                ('reason', models.TextField(blank=True, db_default='')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['sealed', 'amended', 'withdrawn', 'restored'])), name='seal_request_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='PublicationDraft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=60, unique=True)),
                ('text', models.TextField()),
                ('accepted', models.TextField(blank=True)),
                ('edited_at', models.DateTimeField(auto_now=True)),
                ('accepted_at', models.DateTimeField(null=True)),
                ('accepted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('edited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='RunCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('campaign', models.BigIntegerField()),
                ('origin', models.CharField(blank=True, max_length=10)),
                ('state', models.CharField(max_length=12)),
                ('number', models.BigIntegerField()),
                ('is_sum', models.BooleanField()),
            ],
            options={
                'ordering': ['campaign', 'origin', 'state'],
                'indexes': [models.Index(fields=['campaign', 'origin'], name='run_count_by_campaign'), models.Index(condition=models.Q(('is_sum', False)), fields=['campaign'], name='run_count_to_add')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn'])), name='run_count_state_is_known'), models.CheckConstraint(condition=models.Q(('origin__in', ['executed', 'published', 'uploaded', ''])), name='run_count_origin_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Pack',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('size', models.BigIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='PackedFile',
            fields=[
                ('digest', models.BinaryField(primary_key=True, serialize=False)),
                ('start', models.IntegerField()),
                ('length', models.IntegerField()),
                ('is_double', models.BooleanField(db_default=False, default=False)),
                ('pack', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='runs.pack')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=django.db.models.lookups.Exact(django.db.models.functions.text.Length('digest'), 32), name='packed_file_named_by_digest'), models.CheckConstraint(condition=models.Q(('length__gt', 0), ('start__gte', 0)), name='packed_file_has_place')],
            },
        ),
        migrations.CreateModel(
            name='Server',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=100, verbose_name='name')),
                ('address', models.CharField(max_length=255, verbose_name='address')),
                ('port', models.PositiveIntegerField(default=22, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(65535)], verbose_name='SSH port')),
                ('username', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('^[A-Za-z_][A-Za-z0-9_.-]*\\$?$', 'Not a user name.')], verbose_name='user')),
                ('base_dir', models.CharField(blank=True, help_text='BenchLab writes only below this folder of the server. Left empty, the server is only a hop on the way to others, and nothing runs on it.', max_length=255, validators=[django.core.validators.RegexValidator('^/[^\\0\\n]*[^/\\0\\n]$', 'Give an absolute path, not the root folder.')], verbose_name='base directory')),
                ('bindirs', models.JSONField(blank=True, default=list, help_text='Folders with PostgreSQL binaries, besides the usual places.', verbose_name='PostgreSQL folders')),
                ('host_key', models.TextField(blank=True)),
                ('offered_host_key', models.TextField(blank=True)),
                ('state', models.CharField(choices=[('unconfirmed', 'host key not confirmed'), ('ready', 'ready'), ('unreachable', 'not reachable'), ('refused', 'refused')], default='unconfirmed', max_length=20)),
                ('problem_code', models.CharField(blank=True, max_length=60)),
                ('problem', models.TextField(blank=True)),
                ('problem_remedy', models.TextField(blank=True)),
                ('free_bytes', models.BigIntegerField(null=True, verbose_name='free space in the base directory')),
                ('checked_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('environment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.environment')),
                ('hardware', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.hardwareprofile')),
                ('ssh_key', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='servers', to='runs.sshkey', verbose_name='SSH key')),
                ('jump', models.ForeignKey(blank=True, help_text='Another registered server that the connection passes through (ProxyJump).', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reached_through_it', to='runs.server', verbose_name='reached through')),
                ('maintenance_reason', models.CharField(blank=True, max_length=200)),
                ('maintenance_since', models.DateTimeField(null=True)),
                ('maintenance_until', models.DateTimeField(null=True)),
                ('needs_sweep', models.BooleanField(default=False)),
                ('privileges', models.JSONField(blank=True, default=list, verbose_name='privileged actions')),
                ('sweep_after', models.DateTimeField(null=True)),
                ('build_from', models.CharField(blank=True, db_default='', default='', max_length=255)),
                ('build_options', models.JSONField(db_default=[], default=list)),
                ('site', models.CharField(blank=True, default='', help_text='The name of the place whose workers reach it, as in BENCHLAB_SITES. Left empty, every worker reaches it.', max_length=40, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9-]*$', 'Use small letters, digits and hyphens.')], verbose_name='site')),
            ],
            options={
                'ordering': ['name', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('state', 'ready'), _negated=True), models.Q(('host_key', ''), _negated=True), _connector='OR'), name='server_ready_only_with_host_key'), models.CheckConstraint(condition=models.Q(('state__in', ['unconfirmed', 'ready', 'unreachable', 'refused'])), name='server_state_is_known')],
            },
        ),
        migrations.CreateModel(
            name='TopologyNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('database', 'database'), ('load_generator', 'load generator'), ('clusters', 'further clusters')], max_length=20)),
                ('ordinal', models.PositiveSmallIntegerField(default=1)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='runs.server')),
                ('topology', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='runs.topology')),
            ],
            options={
                'ordering': ['topology', 'role', 'ordinal'],
                'constraints': [models.UniqueConstraint(fields=('topology', 'role', 'ordinal'), name='node_once'), models.CheckConstraint(condition=models.Q(('role__in', ['database', 'load_generator', 'clusters'])), name='node_role_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(max_length=200, verbose_name='title')),
                ('kind', models.CharField(choices=[('times', 'at a time of day'), ('installation', 'when a new installation is found')], default='times', max_length=12)),
                ('draft', models.JSONField()),
                ('weekdays', models.JSONField(default=list)),
                ('hour', models.PositiveSmallIntegerField(default=0, verbose_name='hour')),
                ('minute', models.PositiveSmallIntegerField(default=0, verbose_name='minute')),
                ('time_zone', models.CharField(default='UTC', max_length=60, verbose_name='time zone')),
                ('next_at', models.DateTimeField(null=True)),
                ('seen_installations', models.JSONField(default=list)),
                ('enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='schedules', to='runs.server')),
            ],
            options={
                'ordering': ['title', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['times', 'installation'])), name='schedule_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='ServerEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=60)),
                ('message', models.TextField(blank=True)),
                ('by', models.CharField(blank=True, max_length=150)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.server')),
            ],
            options={
                'ordering': ['-at', '-pk'],
                'indexes': [models.Index(condition=models.Q(('code__in', ['hardware_changed', 'environment_changed'])), fields=['server', '-at', '-id'], name='server_event_of_machine'), models.Index(condition=models.Q(('code__in', ['hardware_changed', 'environment_changed']), _negated=True), fields=['server', '-at', '-id'], name='server_event_of_others')],
            },
        ),
        migrations.CreateModel(
            name='ServerCheck',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('host_key', 'Host Key'), ('edit', 'Edit'), ('inspection', 'Inspection'), ('preflight', 'Preflight'), ('campaign', 'Campaign'), ('trial', 'Trial')], max_length=12)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('active', 'Active'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=10)),
                ('given', models.JSONField(default=dict)),
                ('language', models.CharField(blank=True, max_length=12)),
                ('asked_by', models.CharField(blank=True, max_length=150)),
                ('by_way_of', models.CharField(blank=True, max_length=200)),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('deadline', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('answer', models.JSONField(null=True)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('message', models.TextField(blank=True)),
                ('remedy', models.TextField(blank=True)),
                ('server', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='runs.server')),
            ],
            options={
                'ordering': ['-asked_at'],
                'indexes': [models.Index(condition=models.Q(('state__in', ['waiting', 'active'])), fields=['deadline'], name='server_check_open'), models.Index(fields=['asked_at'], name='server_check_by_age')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'active', 'done', 'failed'])), name='server_check_state_is_known'), models.CheckConstraint(condition=models.Q(('kind__in', ['host_key', 'edit', 'inspection', 'preflight', 'campaign', 'trial'])), name='server_check_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='CheckedServer',
            fields=[
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='runs.server')),
                ('server_check', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='machines', to='runs.servercheck')),
            ],
        ),
        migrations.CreateModel(
            name='Build',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('commit', models.CharField(max_length=64)),
                ('bindir', models.CharField(max_length=500)),
                ('options', models.JSONField(default=list)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('building', 'being built'), ('done', 'built'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('removed', 'removed')], default='waiting', max_length=10)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('message', models.TextField(blank=True)),
                ('log', models.TextField(blank=True)),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('looked_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='builds', to='runs.server')),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['server', 'commit'], name='build_by_commit')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'building', 'done', 'failed', 'cancelled', 'removed'])), name='build_state_is_known'), models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'building', 'done'])), fields=('server', 'commit'), name='build_once'), models.UniqueConstraint(condition=models.Q(('state', 'building')), fields=('server',), name='build_one_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('bindir', models.CharField(max_length=500)),
                ('version', models.CharField(max_length=40, verbose_name='version')),
                ('version_num', models.PositiveIntegerField()),
                ('vendor', models.CharField(blank=True, max_length=200)),
                ('configure_options', models.TextField(blank=True)),
                ('pgbench_version_num', models.PositiveIntegerField(null=True)),
                ('has_psql', models.BooleanField(default=False)),
                ('discovered_at', models.DateTimeField(auto_now_add=True)),
                ('removed_at', models.DateTimeField(null=True)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='installations', to='runs.server')),
                ('block_size', models.PositiveIntegerField(null=True, verbose_name='block size')),
                ('cflags', models.TextField(blank=True)),
                ('extensions', models.JSONField(default=list)),
                ('wal_segment_size', models.PositiveIntegerField(null=True, verbose_name='WAL segment size')),
            ],
            options={
                'ordering': ['server', 'version_num', 'bindir'],
                'constraints': [models.UniqueConstraint(fields=('server', 'bindir'), name='installation_once')],
            },
        ),
        migrations.CreateModel(
            name='Campaign',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=120, unique=True)),
                ('title', models.CharField(max_length=200, verbose_name='title')),
                ('question', models.TextField(blank=True, verbose_name='question')),
                ('origin', models.CharField(choices=[('executed', 'executed'), ('published', 'published'), ('uploaded', 'uploaded')], default='executed', max_length=10)),
                ('state', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('finished', 'finished'), ('incomplete', 'ended with failures'), ('cancelled', 'cancelled')], default='queued', max_length=12)),
                ('factors', models.JSONField(default=dict)),
                ('parameters', models.JSONField(default=dict)),
                ('repeats', models.PositiveSmallIntegerField(default=3, verbose_name='repeats')),
                ('seed', models.BigIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('configuration', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.configuration')),
                ('scenario', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='campaigns', to='runs.scenario')),
                ('topology', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.topology')),
                ('expected_every', models.DurationField(null=True, verbose_name='expected every')),
                ('missing_told_at', models.DateTimeField(null=True)),
                ('most_attempts', models.PositiveSmallIntegerField(default=3, verbose_name='attempts at most')),
                ('most_repeats', models.PositiveSmallIntegerField(null=True)),
                ('paused_at', models.DateTimeField(null=True)),
                ('priority', models.SmallIntegerField(default=0, verbose_name='priority')),
                ('question_ja', models.TextField(blank=True)),
                ('title_ja', models.CharField(blank=True, max_length=200)),
                ('tracked_ref', models.CharField(blank=True, max_length=200, verbose_name='branch of the history')),
                ('wanted_half_width', models.FloatField(null=True)),
                ('year', models.PositiveSmallIntegerField(null=True, verbose_name='year')),
                ('configuration_revision', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.configurationrevision')),
                ('treatment', models.JSONField(default=dict)),
                ('missing_mailed_at', models.DateTimeField(null=True)),
                ('looks', models.JSONField(default=list)),
                ('remeasures', models.PositiveSmallIntegerField(db_default=1, default=1, verbose_name='repeats of doubtful runs')),
                ('reproduces', models.SlugField(blank=True, max_length=120)),
                ('leaves_out_doubtful', models.BooleanField(db_default=False, default=False, verbose_name='leaves out doubtful runs')),
                ('mailing_since', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='PublishedTable',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveSmallIntegerField()),
                ('number', models.CharField(max_length=40, verbose_name='table')),
                ('section', models.CharField(blank=True, max_length=40, verbose_name='section')),
                ('page', models.CharField(blank=True, max_length=40, verbose_name='page')),
                ('figure', models.CharField(blank=True, max_length=40, verbose_name='figure')),
                ('has_figures', models.BooleanField(default=True)),
                ('method', models.JSONField(default=dict)),
                ('findings', models.JSONField(default=list)),
                ('notes', models.JSONField(default=list)),
                ('columns', models.JSONField(default=list)),
                ('grid', models.JSONField(default=list)),
                ('chart', models.JSONField(default=dict)),
                ('reproduce', models.JSONField(default=dict)),
                ('campaign', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='published', to='runs.campaign')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tables', to='runs.source')),
                ('repeats', models.PositiveIntegerField(null=True, verbose_name='repeats')),
                ('search', django.contrib.postgres.search.SearchVectorField(null=True)),
                ('statistic', models.CharField(blank=True, choices=[('single', 'single value'), ('median', 'median'), ('mean', 'mean')], max_length=10)),
                ('versions', models.JSONField(default=list)),
                ('answer', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                ('asked', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
            ],
            options={
                'ordering': ['source', 'ordinal'],
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['search'], name='published_table_search')],
                'constraints': [models.UniqueConstraint(fields=('source', 'number'), name='published_table_once'), models.CheckConstraint(condition=models.Q(('statistic__in', ['single', 'median', 'mean', ''])), name='table_statistic_is_known')],
            },
        ),
        migrations.CreateModel(
            name='ScheduleEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('code', models.CharField(max_length=60)),
                ('message', models.TextField(blank=True)),
                ('campaign', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='schedule_events', to='runs.campaign')),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.schedule')),
            ],
            options={
                'ordering': ['schedule', '-pk'],
                'indexes': [models.Index(fields=['schedule', '-id'], name='schedule_event_by_schedule')],
            },
        ),
        migrations.CreateModel(
            name='CampaignConfiguration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveSmallIntegerField()),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='configurations', to='runs.campaign')),
                ('configuration', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.configuration')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='runs.configurationrevision')),
            ],
            options={
                'ordering': ['campaign', 'ordinal'],
                'constraints': [models.UniqueConstraint(fields=('campaign', 'configuration'), name='campaign_configuration_once')],
            },
        ),
        migrations.CreateModel(
            name='PublishedNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveSmallIntegerField()),
                ('role', models.CharField(max_length=40, verbose_name='role')),
                ('name', models.JSONField(default=dict)),
                ('software', models.CharField(blank=True, max_length=200, verbose_name='software')),
                ('configuration', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.configuration')),
                ('environment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.environment')),
                ('hardware', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.hardwareprofile')),
                ('table', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='runs.publishedtable')),
            ],
            options={
                'ordering': ['table', 'ordinal'],
                'constraints': [models.UniqueConstraint(fields=('table', 'ordinal'), name='published_node_once')],
            },
        ),
        migrations.CreateModel(
            name='Cell',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveIntegerField()),
                ('levels', models.JSONField()),
                ('key', models.CharField(max_length=1000)),
                ('version', models.CharField(blank=True, max_length=40)),
                ('version_num', models.PositiveIntegerField(null=True)),
                ('campaign', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='cells', to='runs.campaign')),
                ('installation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.installation')),
                ('series_key', models.CharField(blank=True, max_length=300)),
                ('workload', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ('workload_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='cells', to='runs.workloadversion')),
            ],
            options={
                'ordering': ['campaign', 'ordinal', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='CellSummary',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('n', models.PositiveIntegerField(null=True)),
                ('median', models.FloatField()),
                ('minimum', models.FloatField()),
                ('maximum', models.FloatField()),
                ('mean', models.FloatField()),
                ('log_mean', models.FloatField(null=True)),
                ('log_variance', models.FloatField(null=True)),
                ('cell', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='summaries', to='runs.cell')),
                ('metric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='runs.metric')),
            ],
            options={
                'ordering': ['cell', 'metric'],
                'constraints': [models.UniqueConstraint(fields=('cell', 'metric'), name='cell_summary_once')],
            },
        ),
        migrations.CreateModel(
            name='Annotation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('note', 'note'), ('conclusion', 'conclusion'), ('discussion', 'discussion')], default='note', max_length=12)),
                ('text', models.TextField(verbose_name='text')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='annotations', to='runs.campaign')),
                ('cell', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='annotations', to='runs.cell')),
            ],
            options={
                'ordering': ['campaign', 'created_at', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['note', 'conclusion', 'discussion'])), name='annotation_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='StaleCell',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.campaign')),
                ('cell', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.cell')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='runs.server')),
                ('token', models.BigIntegerField(default=0)),
                ('holder', models.CharField(blank=True, max_length=200)),
                ('heartbeat_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='PreparedCluster',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64)),
                ('directory', models.CharField(max_length=500)),
                ('prepared_at', models.DateTimeField(auto_now_add=True)),
                ('removed_at', models.DateTimeField(null=True)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='clusters', to='runs.campaign')),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='clusters', to='runs.server')),
            ],
            options={
                'ordering': ['campaign', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('repeat', models.PositiveIntegerField()),
                ('position', models.PositiveIntegerField()),
                ('origin', models.CharField(choices=[('executed', 'executed'), ('published', 'published'), ('uploaded', 'uploaded')], default='executed', max_length=10)),
                ('state', models.CharField(choices=[('queued', 'queued'), ('claimed', 'claimed'), ('preparing', 'preparing'), ('measuring', 'measuring'), ('collecting', 'collecting'), ('finished', 'finished'), ('failed', 'failed'), ('errored', 'error in BenchLab'), ('cancelled', 'cancelled'), ('lost', 'lost its worker'), ('withdrawn', 'withdrawn')], default='queued', max_length=12)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('message', models.TextField(blank=True)),
                ('remedy', models.TextField(blank=True)),
                ('attempt', models.PositiveSmallIntegerField(default=1)),
                ('cancel_requested_at', models.DateTimeField(null=True)),
                ('plan', models.JSONField(null=True)),
                ('server_version', models.CharField(blank=True, max_length=40)),
                ('tool_name', models.CharField(blank=True, max_length=40)),
                ('tool_version', models.CharField(blank=True, max_length=40)),
                ('quality', models.JSONField(default=list)),
                ('queued_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('campaign', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='runs.campaign')),
                ('cell', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='runs.cell')),
                ('cluster', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='runs.preparedcluster')),
                ('environment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.environment')),
                ('hardware', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.hardwareprofile')),
                ('server', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.server')),
                ('settings', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.settingssnapshot')),
                ('external_id', models.CharField(blank=True, max_length=200)),
                ('labels', models.JSONField(default=dict)),
                ('round', models.PositiveIntegerField(null=True)),
                ('validity', models.CharField(blank=True, choices=[('valid', 'valid'), ('doubtful', 'doubtful'), ('invalid', 'not valid')], db_default='', max_length=10)),
                ('certificate', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ('again_of', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='again', to='runs.run')),
                ('cell_version', models.CharField(blank=True, db_default='', editable=False, max_length=40)),
                ('cell_major', models.CharField(blank=True, db_default='', editable=False, max_length=40)),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['campaign', 'state'], name='run_by_campaign_state'), models.Index(fields=['-finished_at', '-id'], name='run_by_end'), models.Index(condition=models.Q(('state__in', ['queued', 'lost'])), fields=['server', 'id'], name='run_waiting'), models.Index(fields=['campaign', 'hardware'], name='run_by_campaign_hardware'), models.Index(fields=['campaign', 'environment'], name='run_by_campaign_environment'), models.Index(fields=['campaign', '-queued_at'], name='run_by_campaign_queued'), models.Index(condition=models.Q(('origin', 'executed'), ('state', 'finished')), fields=['id'], name='run_executed_here'), models.Index(condition=models.Q(('again_of__isnull', False)), fields=['again_of'], name='run_measured_again'), models.Index(fields=['cell_major', '-id'], name='run_by_major'), models.Index(fields=['cell_version', '-id'], name='run_by_version'), models.Index(condition=models.Q(('state', 'finished'), _negated=True), fields=['state', '-id'], name='run_by_state'), models.Index(condition=models.Q(('origin', 'uploaded'), _negated=True), fields=['origin', '-id'], name='run_by_origin'), models.Index(condition=models.Q(('validity', ''), _negated=True), fields=['validity', '-id'], name='run_by_validity'), models.Index(fields=['server', '-id'], name='run_by_server'), models.Index(fields=['hardware', '-id'], name='run_by_hardware'), models.Index(condition=models.Q(('cell_major__in', ['9.0', '9.1', '9.2', '9.3', '9.4', '9.5', '9.6'])), fields=['-id'], name='run_of_nine'), models.Index(fields=['campaign', '-id'], name='run_by_campaign'), models.Index(condition=models.Q(('cell_major', ''), _negated=True), fields=['campaign', 'cell_major', '-id'], name='run_by_campaign_major'), models.Index(condition=models.Q(('validity', ''), _negated=True), fields=['campaign', 'validity', '-id'], name='run_by_campaign_validity'), models.Index(condition=models.Q(('server__isnull', False)), fields=['campaign', 'server', '-id'], name='run_by_campaign_server')],
                'constraints': [models.UniqueConstraint(fields=('cell', 'repeat'), name='run_once_a_repeat'), models.UniqueConstraint(condition=models.Q(('state__in', ['claimed', 'preparing', 'measuring', 'collecting'])), fields=('server',), name='one_active_run_a_server'), models.UniqueConstraint(condition=models.Q(('external_id', ''), _negated=True), fields=('campaign', 'external_id'), name='run_once_an_external_id'), models.CheckConstraint(condition=models.Q(('origin__in', ['executed', 'published', 'uploaded'])), name='run_origin_is_known'), models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn'])), name='run_state_is_known'), models.CheckConstraint(condition=models.Q(('validity__in', ['valid', 'doubtful', 'invalid', ''])), name='run_validity_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Measurement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.FloatField()),
                ('n', models.PositiveIntegerField(default=1)),
                ('statistic', models.CharField(choices=[('single', 'single value'), ('median', 'median'), ('mean', 'mean')], default='single', max_length=10)),
                ('metric', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='runs.metric')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='measurements', to='runs.run')),
            ],
            options={
                'ordering': ['run', 'metric'],
                'indexes': [models.Index(fields=['metric', '-run'], name='measurement_by_metric')],
                'constraints': [models.UniqueConstraint(fields=('run', 'metric', 'statistic'), name='measurement_once'), models.CheckConstraint(condition=models.Q(('statistic__in', ['single', 'median', 'mean'])), name='measurement_statistic_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Command',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveSmallIntegerField()),
                ('ordinal', models.PositiveIntegerField()),
                ('step', models.CharField(max_length=80)),
                ('host', models.CharField(max_length=255)),
                ('argv', models.JSONField()),
                ('stdin', models.TextField(blank=True)),
                ('exit_status', models.IntegerField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('stdout', models.TextField(blank=True)),
                ('stderr', models.TextField(blank=True)),
                ('truncated', models.BooleanField(default=False)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='commands', to='runs.run')),
            ],
            options={
                'ordering': ['run', 'attempt', 'ordinal'],
                'constraints': [models.UniqueConstraint(fields=('run', 'attempt', 'step'), name='command_once')],
            },
        ),
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('media_type', models.CharField(default='text/plain', max_length=100)),
                ('size', models.BigIntegerField()),
                ('sha256', models.CharField(db_index=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='runs.run')),
            ],
            options={
                'ordering': ['run', 'name'],
                'indexes': [models.Index(condition=models.Q(('name', 'perf-folded.txt')), fields=['run'], name='artifact_profile')],
                'constraints': [models.UniqueConstraint(fields=('run', 'name'), name='artifact_once'), models.CheckConstraint(condition=models.Q(('sha256__regex', '^[0-9a-f]{64}$')), name='artifact_named_by_digest'), models.CheckConstraint(condition=models.Q(('size__gte', 0)), name='artifact_has_size')],
            },
        ),
        migrations.CreateModel(
            name='RunEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('from_state', models.CharField(blank=True, max_length=12)),
                ('to_state', models.CharField(blank=True, max_length=12)),
                ('code', models.CharField(max_length=60)),
                ('message', models.TextField(blank=True)),
                ('attempt', models.PositiveSmallIntegerField(default=1)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.run')),
            ],
            options={
                'ordering': ['run', 'id'],
                'indexes': [models.Index(condition=models.Q(('code', 'passed_over')), fields=['run'], name='run_event_passed_over')],
                'constraints': [models.CheckConstraint(condition=models.Q(('from_state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn', ''])), name='event_from_state_is_known'), models.CheckConstraint(condition=models.Q(('to_state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn', ''])), name='event_to_state_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=80)),
                ('unit', models.CharField(blank=True, max_length=40)),
                ('start', models.FloatField(default=0)),
                ('interval', models.FloatField()),
                ('values', django.contrib.postgres.fields.ArrayField(base_field=runs.models.measurements.RealField(null=True), size=None)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='series', to='runs.run')),
            ],
            options={
                'verbose_name_plural': 'series',
                'ordering': ['run', 'name'],
                'constraints': [models.UniqueConstraint(fields=('run', 'name'), name='series_once')],
            },
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('step', 'step'), ('alarm', 'single run')], max_length=10)),
                ('ratio', models.FloatField()),
                ('before', models.FloatField()),
                ('after', models.FloatField()),
                ('p_value', models.FloatField(null=True)),
                ('found_at', models.DateTimeField(auto_now_add=True)),
                ('decision', models.CharField(choices=[('open', 'open'), ('confirmed', 'confirmed'), ('dismissed', 'dismissed'), ('refuted', 'refuted by later runs')], default='open', max_length=10)),
                ('note', models.TextField(blank=True)),
                ('decided_at', models.DateTimeField(null=True)),
                ('mailed_at', models.DateTimeField(null=True)),
                ('cell', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='runs.cell')),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('metric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='runs.metric')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                ('earliest', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('latest', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('rules', models.PositiveSmallIntegerField(db_default=1, default=1)),
                ('mailing_since', models.DateTimeField(null=True)),
                ('campaign', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.campaign')),
            ],
            options={
                'ordering': ['-found_at', '-pk'],
                'indexes': [models.Index(condition=models.Q(('mailed_at', None)), fields=['id'], name='change_to_mail'), models.Index(fields=['rules', 'id'], name='change_by_rules'), models.Index(condition=models.Q(('decision', 'open'), _negated=True), fields=['decision', '-id'], name='change_by_decision'), models.Index(condition=models.Q(('kind', 'alarm')), fields=['-id'], name='change_of_single_run'), models.Index(fields=['campaign', '-id'], name='change_by_campaign')],
                'constraints': [models.UniqueConstraint(fields=('run', 'metric', 'kind'), name='change_once'), models.CheckConstraint(condition=models.Q(('decision__in', ['open', 'confirmed', 'dismissed', 'refuted'])), name='change_decision_is_known'), models.CheckConstraint(condition=models.Q(('kind__in', ['step', 'alarm'])), name='change_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='PrintedFigure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('row', models.PositiveSmallIntegerField()),
                ('column', models.PositiveSmallIntegerField()),
                ('text', models.CharField(max_length=60)),
                ('kind', models.CharField(choices=[('measured', 'measured'), ('derived', 'derived from other figures'), ('not_measured', 'printed, but not measured')], default='measured', max_length=12)),
                ('recomputed', models.FloatField(null=True)),
                ('differs', models.BooleanField(default=False)),
                ('measurement', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='printed', to='runs.measurement')),
                ('table', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='printed', to='runs.publishedtable')),
                ('exact', models.BooleanField(default=True)),
                ('n', models.PositiveIntegerField(null=True)),
                ('statistic', models.CharField(blank=True, choices=[('single', 'single value'), ('median', 'median'), ('mean', 'mean')], max_length=10)),
                ('node', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to='runs.publishednode')),
            ],
            options={
                'ordering': ['table', 'row', 'column'],
                'constraints': [models.UniqueConstraint(fields=('table', 'row', 'column'), name='figure_once'), models.CheckConstraint(condition=models.Q(('kind__in', ['measured', 'derived', 'not_measured'])), name='figure_kind_is_known'), models.CheckConstraint(condition=models.Q(('statistic__in', ['single', 'median', 'mean', ''])), name='figure_statistic_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Discrepancy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveSmallIntegerField()),
                ('kind', models.CharField(choices=[('ratio', 'ratio'), ('median', 'median'), ('sum', 'sum'), ('other_table', 'another table says otherwise'), ('repeated_row', 'repeated row'), ('not_measured', 'printed, but not measured'), ('text', 'the text says otherwise')], max_length=20)),
                ('printed', models.CharField(max_length=100)),
                ('recomputed', models.CharField(blank=True, max_length=100)),
                ('explanation', models.JSONField(default=dict)),
                ('figure', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to='runs.printedfigure')),
                ('table', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='discrepancies', to='runs.publishedtable')),
                ('figures', models.ManyToManyField(related_name='disputed', to='runs.printedfigure')),
                ('weight', models.PositiveSmallIntegerField(choices=[(1, 'wrong conclusion'), (2, 'wrong figure'), (3, 'rounding'), (4, 'wording')], default=2)),
            ],
            options={
                'verbose_name_plural': 'discrepancies',
                'ordering': ['table', 'ordinal'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['ratio', 'median', 'sum', 'other_table', 'repeated_row', 'not_measured', 'text'])), name='discrepancy_kind_is_known'), models.CheckConstraint(condition=models.Q(('weight__in', [1, 2, 3, 4])), name='discrepancy_weight_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('is_public', models.BooleanField(default=True, verbose_name='public')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['name', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sha', models.CharField(max_length=64)),
                ('ref', models.CharField(blank=True, max_length=200, verbose_name='branch or tag')),
                ('url', models.URLField(blank=True, max_length=500)),
                ('committed_at', models.DateTimeField(null=True, verbose_name='committed')),
                ('parents', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='runs.project')),
            ],
            options={
                'ordering': ['project', '-committed_at', '-pk'],
                'indexes': [models.Index(condition=models.Q(('committed_at__isnull', False)), fields=['project', '-committed_at', '-id'], name='revision_by_date'), models.Index(condition=models.Q(('committed_at', None)), fields=['project'], name='revision_without_date')],
                'constraints': [models.UniqueConstraint(fields=('project', 'sha'), name='revision_once')],
            },
        ),
        migrations.CreateModel(
            name='Token',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, verbose_name='name')),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('secret_hash', models.CharField(max_length=64)),
                ('scopes', models.JSONField(default=list, verbose_name='scopes')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(null=True, verbose_name='expires')),
                ('revoked_at', models.DateTimeField(null=True)),
                ('last_used_at', models.DateTimeField(null=True, verbose_name='last used')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='runs.project')),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=200)),
                ('body_hash', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(default=201)),
                ('answer', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='runs.project')),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(fields=('project', 'key'), name='upload_once_a_key')],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.URLField(max_length=500)),
                ('encrypted_secret', models.TextField()),
                ('events', models.JSONField(default=list)),
                ('is_active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='runs.project')),
            ],
            options={
                'ordering': ['project', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event', models.CharField(max_length=40)),
                ('payload', models.TextField()),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('delivered', 'delivered'), ('given_up', 'given up')], default='waiting', max_length=10)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(null=True)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('problem', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('delivered_at', models.DateTimeField(null=True)),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.webhook')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-pk'],
                'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['next_try_at'], name='delivery_waiting'), models.Index(fields=['webhook', '-id'], name='delivery_by_webhook')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'delivered', 'given_up'])), name='delivery_state_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('operator', 'operator'), ('maintainer', 'maintainer')], default='viewer', max_length=12, verbose_name='role')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='runs.project')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['project', 'user'],
                'constraints': [models.UniqueConstraint(fields=('user', 'project'), name='member_once'), models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'operator', 'maintainer'])), name='membership_role_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('operator', 'operator'), ('maintainer', 'maintainer')], max_length=12, verbose_name='role')),
                ('secret_hash', models.CharField(max_length=64, unique=True)),
                ('note', models.CharField(blank=True, max_length=200, verbose_name='for whom')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(verbose_name='expires')),
                ('ended_at', models.DateTimeField(null=True)),
                ('accepted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('invited_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='runs.project')),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'operator', 'maintainer'])), name='invitation_role_is_known')],
            },
        ),
        migrations.CreateModel(
            name='RevisionRef',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ref', models.CharField(max_length=200, verbose_name='branch or tag')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='further_refs', to='runs.revision')),
            ],
            options={
                'ordering': ['revision', 'ref'],
                'constraints': [models.UniqueConstraint(fields=('revision', 'ref'), name='ref_once')],
            },
        ),
        migrations.CreateModel(
            name='Seal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField()),
                ('kind', models.CharField(choices=[('sealed', 'sealed'), ('amended', 'amended'), ('withdrawn', 'withdrawn'), ('restored', 'restored')], max_length=10)),
                ('run', models.BigIntegerField(db_index=True)),
                ('at', models.DateTimeField()),
                ('reason', models.TextField(blank=True)),
                ('content', models.TextField(blank=True)),
                ('hash', models.BinaryField(max_length=32)),
                ('key', models.BinaryField(max_length=32)),
                ('signature', models.BinaryField(max_length=64)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.project')),
            ],
            options={
                'ordering': ['project', 'number'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['sealed', 'amended', 'withdrawn', 'restored'])), name='seal_kind_is_known'), models.UniqueConstraint(fields=('project', 'number'), name='seal_once_a_number')],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('actor', models.CharField(blank=True, max_length=150)),
                ('by_way_of', models.CharField(blank=True, max_length=200)),
                ('action', models.CharField(max_length=60)),
                ('subject', models.CharField(max_length=300)),
                ('before', models.JSONField(default=dict)),
                ('after', models.JSONField(default=dict)),
                ('project', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, to='runs.project')),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['project', '-id'], name='audit_by_project'), models.Index(fields=['actor', '-id'], name='audit_by_actor'), models.Index(fields=['action', '-id'], name='audit_by_action'), models.Index(fields=['subject', '-id'], name='audit_by_subject')],
            },
        ),
        migrations.CreateModel(
            name='Bisection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('running', 'running'), ('finished', 'finished'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='running', max_length=10)),
                ('asked', models.JSONField()),
                ('draft', models.JSONField()),
                ('builds', models.JSONField()),
                ('followed', models.JSONField(default=dict)),
                ('low', models.PositiveIntegerField(default=0)),
                ('high', models.PositiveIntegerField()),
                ('verdict', models.CharField(blank=True, max_length=20)),
                ('is_found', models.BooleanField(default=False)),
                ('rules', models.PositiveSmallIntegerField(default=0)),
                ('message', models.TextField(blank=True)),
                ('fingerprint', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='bisections', to='runs.campaign')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='bisections', to='runs.project')),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='bisections', to='runs.server')),
                ('awaited_at', models.DateTimeField(null=True)),
                ('is_own', models.BooleanField(db_default=False, default=False)),
                ('messages', models.JSONField(db_default={}, default=dict)),
                ('token', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='runs.token')),
                ('wait_seconds', models.PositiveIntegerField(null=True)),
                ('is_building', models.BooleanField(db_default=False, default=False)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(condition=models.Q(('state', 'running')), fields=['id'], name='bisection_running'), models.Index(condition=models.Q(('state', 'finished')), fields=['rules', 'id'], name='bisection_by_rules')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['running', 'finished', 'failed', 'cancelled'])), name='bisection_state_is_known'), models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('campaign', 'fingerprint'), name='bisection_once_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='BisectionStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('low', models.PositiveIntegerField()),
                ('middle', models.PositiveIntegerField(null=True)),
                ('high', models.PositiveIntegerField()),
                ('bisection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='runs.bisection')),
                ('campaign', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='bisection_step', to='runs.campaign')),
                ('table', models.JSONField(null=True)),
            ],
            options={
                'ordering': ['bisection', 'pk'],
            },
        ),
        migrations.AddField(
            model_name='campaign',
            name='project',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='campaigns', to='runs.project'),
        ),
        migrations.AddField(
            model_name='cell',
            name='revision',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='cells', to='runs.revision'),
        ),
        migrations.AddField(
            model_name='lease',
            name='run',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='leases', to='runs.run'),
        ),
        migrations.AddField(
            model_name='preparedcluster',
            name='prepared_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run'),
        ),
        migrations.AddField(
            model_name='project',
            name='members',
            field=models.ManyToManyField(blank=True, related_name='projects', through='runs.Membership', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='campaign',
            index=models.Index(fields=['origin', '-id'], name='campaign_by_origin'),
        ),
        migrations.AddIndex(
            model_name='campaign',
            index=models.Index(fields=['scenario', 'origin', '-id'], name='campaign_by_theme'),
        ),
        migrations.AddIndex(
            model_name='campaign',
            index=models.Index(fields=['scenario', 'project'], name='campaign_by_scenario'),
        ),
        migrations.AddIndex(
            model_name='campaign',
            index=models.Index(condition=models.Q(('state', 'finished'), _negated=True), fields=['state', '-id'], name='campaign_by_state'),
        ),
        migrations.AddConstraint(
            model_name='campaign',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'running', 'finished', 'incomplete', 'cancelled'])), name='campaign_state_is_known'),
        ),
        migrations.AddConstraint(
            model_name='campaign',
            constraint=models.CheckConstraint(condition=models.Q(('origin__in', ['executed', 'published', 'uploaded'])), name='campaign_origin_is_known'),
        ),
        migrations.AddIndex(
            model_name='cell',
            index=models.Index(fields=['version', 'campaign'], name='cell_by_version', opclasses=['varchar_pattern_ops', 'int8_ops']),
        ),
        migrations.AddIndex(
            model_name='cell',
            index=models.Index(fields=['campaign', 'ordinal'], name='cell_by_ordinal'),
        ),
        migrations.AddIndex(
            model_name='cell',
            index=models.Index(condition=models.Q(('workload_version__isnull', False)), fields=['workload_version', 'campaign'], name='cell_by_workload'),
        ),
        migrations.AddIndex(
            model_name='cell',
            index=models.Index(condition=models.Q(('revision__isnull', False)), fields=['revision', 'campaign'], name='cell_by_revision'),
        ),
        migrations.AddIndex(
            model_name='cell',
            index=models.Index(fields=['campaign', 'series_key', 'ordinal'], name='cell_by_series_ordinal'),
        ),
        migrations.AddConstraint(
            model_name='cell',
            constraint=models.UniqueConstraint(fields=('campaign', 'key'), name='cell_once'),
        ),
        migrations.AddConstraint(
            model_name='preparedcluster',
            constraint=models.UniqueConstraint(condition=models.Q(('removed_at', None)), fields=('server', 'directory'), name='prepared_cluster_once'),
        ),
        *(
            migrations.RunSQL(each)
            for each in (AUDIT, VERSIONS, COUNTS, CHANGES, STATISTICS)
        ),
    ]
