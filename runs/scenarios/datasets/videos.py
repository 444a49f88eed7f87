"""Records of video metadata with Japanese and English titles and descriptions: our own generator.

The records of the 2017 report are not public. These have the keys of its printed example, titles of
10 to 25 characters and descriptions of 60 to 250, with the searched word in 0.5 % of the titles and
1 % of the descriptions. The same seed gives the same records. Run as a program, it writes the file:
`python -m runs.scenarios.datasets.videos 40000 FOLDER`.
"""

import csv
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

TABLE = "records"
KEYWORD = "カレー"
IN_TITLES, IN_DESCRIPTIONS = 0.005, 0.01
SEED = 20171
BYTES_A_RECORD = 1_500
# None of these contains the searched word, and no two of them form it.
_WORDS = """
東京 大阪 京都 北海道 沖縄 富士山 桜 紅葉 花火 温泉 旅行 電車 新幹線 飛行機 散歩 料理
弁当 寿司 うどん そば ラーメン 天ぷら 味噌汁 お茶 和菓子 音楽 歌ってみた 演奏 ピアノ
ギター 太鼓 三味線 踊ってみた 実況 ゲーム 攻略 対戦 将棋 囲碁 野球 相撲 柔道 剣道 猫 犬
金魚 動物園 水族館 図書館 学校 講座 科学 実験 宇宙 天文 歴史 戦国 江戸 明治 昭和 平成
最終回 予告 総集編 前編 後編 第一話 字幕 高画質 作業用 まとめ 解説 検証 速報 生放送
初心者 上級者 手作り 工作 模型 データベース 性能 索引 検索 全文 並列 複製 分散 best live
music game review how to travel cooking guide episode trailer classic piano guitar summer
winter night city train history science
"""
WORDS = tuple(_WORDS.split())
PARTICLES = ("の", "を", "と", "で", "が", "に", "へ", " ", "、", "!")
CATEGORIES = ("ゲーム", "音楽", "料理", "動物", "科学", "旅行", "スポーツ", "歴史")


def records(count: int) -> Iterator[tuple[int, str, str]]:
    """(id, tag, record as JSON) for this many videos."""
    chance = random.Random(SEED)  # noqa: S311 -- repeatable on purpose
    for number in range(1, count + 1):
        record = {
            "tags": chance.sample(WORDS, 3),
            "title": _text(chance, 10, 25, IN_TITLES),
            "length": chance.randint(10, 3600),
            "category": chance.choice(CATEGORIES),
            "size_low": chance.randint(1_000_000, 20_000_000),
            "video_id": f"sm{number}",
            "file_type": chance.choice(("flv", "mp4")),
            "size_high": chance.randint(2_000_000, 90_000_000),
            "watch_num": int(chance.paretovariate(1.2) * 10),
            "mylist_num": int(chance.paretovariate(1.5)),
            "comment_num": int(chance.paretovariate(1.4)),
            "description": _text(chance, 60, 250, IN_DESCRIPTIONS),
            "upload_time": 1_200_000_000 + chance.randint(0, 300_000_000),
        }
        yield number, chance.choice(WORDS), json.dumps(record, ensure_ascii=False)


def _text(chance: random.Random, shortest: int, longest: int, share: float) -> str:
    """Words up to the length; with this probability the searched word is among them."""
    length = chance.randint(shortest, longest)
    words = [KEYWORD] if chance.random() < share else []
    size = sum(map(len, words))
    while size < length:
        words.append(chance.choice(WORDS) + chance.choice(PARTICLES))
        size += len(words[-1])
    # The last word may be cut; the searched word before it stays complete.
    last_word = words.pop()
    chance.shuffle(words)
    return "".join([*words, last_word])[:longest]


def write(count: int, folder: Path) -> None:
    """Write the file that is copied into the table."""
    with (folder / f"{TABLE}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(records(count))


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]))
