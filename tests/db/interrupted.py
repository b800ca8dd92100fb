"""A process that is interrupted again and again while its threads write; prints what each writer was told.

usage: interrupted.py DATABASE SECONDS; the table `said` must be there.
"""

import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseBusy

OTHERS = 4


def insert(database: SqliteDatabase, word: str) -> None:
    """One row, by whichever thread leads."""
    database.write(lambda transaction: transaction.run("INSERT INTO said (word) VALUES (?)", (word,)))


def main(path: str, seconds: float) -> dict[str, list[str]]:
    """The main thread and others write until the time is up; only the main thread can be interrupted."""
    database = SqliteDatabase(Path(path))
    told: dict[str, list[str]] = {"written": [], "busy": [], "interrupted": []}
    is_over = threading.Event()

    def write_on(name: str) -> None:
        number = 0
        while not is_over.is_set():
            word = f"{name}-{number}"
            number += 1
            try:
                insert(database, word)
                told["written"].append(word)
            except DatabaseBusy:
                told["busy"].append(word)

    def interrupt_on() -> None:
        chance = random.Random(3)
        while not is_over.wait(chance.uniform(0.0005, 0.004)):
            os.kill(os.getpid(), signal.SIGINT)

    armed = False

    def strike(_signal: int, _frame: object) -> None:
        """Interrupts the main thread while it writes, and not while it tells or tidies up."""
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, strike)
    others = [threading.Thread(target=write_on, args=(f"other-{number}",)) for number in range(OTHERS)]
    troublemaker = threading.Thread(target=interrupt_on)
    clock = threading.Timer(seconds, is_over.set)
    for thread in (*others, troublemaker, clock):
        thread.start()
    number = 0
    word = ""
    while not is_over.is_set():
        try:
            word = f"main-{number}"
            number += 1
            armed = True
            insert(database, word)
            armed = False
            told["written"].append(word)
        except KeyboardInterrupt:
            told["interrupted"].append(word)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for thread in (*others, troublemaker):
        thread.join(20)
        assert not thread.is_alive(), "a writer sleeps for ever"
    insert(database, "after")
    told["written"].append("after")
    database.close()
    return told


if __name__ == "__main__":
    os.write(1, json.dumps(main(sys.argv[1], float(sys.argv[2]))).encode())
