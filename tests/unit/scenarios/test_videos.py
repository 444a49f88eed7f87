"""The records of the full-text search."""

import json

from runs.scenarios.datasets import videos


def test_the_same_records_are_made_again_with_the_searched_word_as_often_as_in_the_report():
    made = [json.loads(record) for _number, _tag, record in videos.records(5000)]
    assert made == [json.loads(record) for _number, _tag, record in videos.records(5000)]
    titles = [each["title"] for each in made]
    descriptions = [each["description"] for each in made]
    assert all(10 <= len(each) <= 25 for each in titles)
    assert all(60 <= len(each) <= 250 for each in descriptions)
    assert 10 <= sum(videos.KEYWORD in each for each in titles) <= 45
    assert 30 <= sum(videos.KEYWORD in each for each in descriptions) <= 80
    assert len(made[0]) == 13
