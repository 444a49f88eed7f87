"""Words of a search in both languages."""

from runs.published import words


def test_one_spelling_finds_the_other():
    same = [
        ("サーバー", "サーバ"),
        ("オーバーヘッド", "オーバヘッド"),
        ("ＰｏｓｔｇｒｅＳＱＬ 14", "PostgreSQL 14"),
        ("21,378.30", "21378.30"),
        ("TPS", "tps"),
        ("バージョン14", "version 14"),
        ("pg 9.6.3", "9.6"),
    ]

    assert [pair for pair in same if words.query(pair[0]) != words.query(pair[1])] == []


def test_a_version_is_looked_for_as_such():
    assert words.query("PostgreSQL 14") == "version14"
    assert words.query("PostgreSQL 9.6.24 checksums") == "version9p6 checksums"
    assert words.query("14 clients") == "14 clients"


def test_japanese_is_found_within_longer_words():
    text = words.tokens(["ページチェックサムの負荷"]).split()

    assert set(words.query("チェックサム").split()) <= set(text)
    assert not set(words.query("パーティション").split()) <= set(text)
