"""A prepared cluster has its size and when it was last used: it is kept for a next campaign."""

import django.db.models.functions.datetime
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0083_schedules_of_projects'),
    ]

    operations = [
        migrations.AddField(
            model_name='preparedcluster',
            name='bytes',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='preparedcluster',
            name='used_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=django.utils.timezone.now),
        ),
    ]
