"""The drawing of machines and clusters."""

from runs.charts.arrangement import Part, drawing


def test_parts_of_a_machine_lie_in_its_frame_and_no_two_overlap():
    parts = [
        Part("load", "client", "pgbench", "load"),
        Part("database", "db", "main", "database"),
        Part("further", "db3", "standby2", "standby", "asynchronous"),
        Part("further", "db2", "standby1", "standby", "synchronous"),
        Part("further", "db2", "standby3", "standby", "asynchronous"),
    ]
    made = drawing(parts)
    boxes = {each.name: each for each in made.boxes}
    frames = {each.name: each for each in made.frames}
    for part in parts:
        box, frame = boxes[part.name], frames[part.machine]
        assert frame.x <= box.x
        assert box.x + box.width <= frame.x + frame.width <= made.width
        assert frame.y < box.y
        assert box.y + box.height <= frame.y + frame.height <= made.height
    placed = list(frames.values())
    for one in placed:
        for other in placed:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            below = one.y + one.height <= other.y or other.y + other.height <= one.y
            assert one is other or apart or below
    assert made.shared == ["db2"]
    assert sorted(each.label for each in made.arrows) == [
        "", "asynchronous", "asynchronous", "synchronous",
    ]  # fmt: skip
