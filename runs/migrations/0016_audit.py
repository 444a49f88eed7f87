"""The audit trail."""

import django.db.models.deletion
from django.db import migrations, models


# Whatever goes wrong in BenchLab: an entry that is there stays as it is.
FORBID = """
CREATE FUNCTION runs_audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry of the audit trail stays as it is';
END
$$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON runs_auditentry
    FOR EACH ROW EXECUTE FUNCTION runs_audit_stays();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0015_arrangements'),
    ]

    operations = [
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
        migrations.RunSQL(FORBID, "DROP FUNCTION runs_audit_stays() CASCADE"),
    ]
