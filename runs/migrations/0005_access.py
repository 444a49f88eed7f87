"""Who may do what, what was done, and what was measured: kept so that nobody changes it unseen."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Of imports that were not looked at as they are today: such a name is no stored content.
FORGET_NAMELESS = r"DELETE FROM runs_artifact WHERE sha256 !~ '^[0-9a-f]{64}$' OR size < 0"


def keep_members(apps, schema_editor):
    """Whoever could queue and annotate still can: members, and everybody in the default project.

    Without roles, each account could do this in each project that it could read.
    """
    Project, Membership = apps.get_model("runs", "Project"), apps.get_model("runs", "Membership")
    User = apps.get_model("auth", "User")
    found = set(Project.members.through.objects.values_list("user_id", "project_id"))
    default = Project.objects.filter(slug="default").first()
    if default is not None:
        people = User.objects.filter(is_active=True, is_superuser=False)
        found |= {(key, default.pk) for key in people.values_list("pk", flat=True)}
    Membership.objects.bulk_create(
        Membership(user_id=user, project_id=project, role="operator")
        for user, project in sorted(found)
    )


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0004_house"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(FORGET_NAMELESS, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(("sha256__regex", "^[0-9a-f]{64}$")),
                name="artifact_named_by_digest",
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(("size__gte", 0)), name="artifact_has_size"
            ),
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "viewer"),
                            ("operator", "operator"),
                            ("maintainer", "maintainer"),
                        ],
                        default="viewer",
                        max_length=12,
                        verbose_name="role",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="runs.project",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["project", "user"]},
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(fields=("user", "project"), name="member_once"),
        ),
        migrations.RunPython(keep_members, migrations.RunPython.noop),
        migrations.RemoveField(model_name="project", name="members"),
        migrations.AddField(
            model_name="project",
            name="members",
            field=models.ManyToManyField(
                blank=True,
                related_name="projects",
                through="runs.Membership",
                to=settings.AUTH_USER_MODEL,
            ),
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
            },
        ),
    ]
