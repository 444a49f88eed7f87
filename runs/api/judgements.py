"""What certificates say of the runs behind a figure, in answers."""

from typing import Any

from rest_framework import serializers


class JudgedSerializer(serializers.Serializer[Any]):
    """How many runs have each judgement. Invalid ones are left out of all figures by rule."""

    valid = serializers.IntegerField()
    doubtful = serializers.IntegerField()
    invalid = serializers.IntegerField()
    unknown = serializers.IntegerField()
