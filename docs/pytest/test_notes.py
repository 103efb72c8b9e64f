"""Run `pytest` in this folder. One test fails: its note can be lost, or empty, after it was saved."""

import notes


def setup(folder):
    (folder / "note").write_text("old")


def check(folder, told):
    found = (folder / "note").read_text()
    assert found in ("old", "new"), f"the note is {found!r}"
    assert found == "new" or "saved" not in told, "the note was saved, and is the old one"


def test_save(crash):
    def workload(folder):
        notes.save(folder / "note", "new")
        print("saved")

    crash.run(workload, check, setup)


def test_save_safely(crash):
    def workload(folder):
        notes.save_safely(folder / "note", "new")
        print("saved")

    crash.run(workload, check, setup)
