"""Keep the answers of bisections as they were given, and whose they are and who waits for them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0027_judge_again'),
    ]

    operations = [
        migrations.AddField(
            model_name='bisection',
            name='awaited_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='bisection',
            name='is_own',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='bisection',
            name='messages',
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name='bisection',
            name='token',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='runs.token'),
        ),
        migrations.AddField(
            model_name='bisection',
            name='wait_seconds',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='bisectionstep',
            name='table',
            field=models.JSONField(null=True),
        ),
    ]
