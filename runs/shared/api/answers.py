"""What an answer says, the same in each answer of the API: the words are those of its page."""

from typing import Any

from rest_framework import serializers


class AnswerSerializer(serializers.Serializer[Any]):
    """What a page says of the same question: `sentence` is its title, `short` that of a badge.

    `low` and `high` bound the ratio that the sentence is about, null where nothing does; `family`
    says for what they hold, and `exit_code` is that of a job: 0, 1 for worse, 2 for undecided, 3
    for not comparable.
    """

    sentence = serializers.CharField()
    short = serializers.CharField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    family = serializers.CharField()
    exit_code = serializers.IntegerField()
