"""Loads that people bring."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0091_commit_subjects"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Load",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=80, unique=True)),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("key_encrypted", models.BinaryField()),
                ("content", models.BinaryField()),
                ("format", models.CharField(max_length=20)),
                ("data_kind", models.CharField(max_length=10)),
                ("units", models.PositiveIntegerField()),
                ("left_out", models.PositiveIntegerField()),
                ("calls", models.BigIntegerField()),
                ("masked", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(verbose_name="kept until")),
                ("created_by", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ("project", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="loads", to="runs.project")),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["expires_at"], name="load_expiry")],
            },
        ),
    ]
