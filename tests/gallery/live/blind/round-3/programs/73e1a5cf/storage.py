import json
import random
import sqlite3
import sys
import time


class Storage:
    def __init__(self, path):
        self.path = path

    def _connect(self):
        return sqlite3.connect(self.path, timeout=60, isolation_level=None)

    def init(self):
        c = self._connect()
        c.execute("create table if not exists trials (id integer primary key, params text, value real, state text)")
        c.execute("create table if not exists steps (trial integer, step integer, value real)")
        c.close()

    def ask(self):
        c = self._connect()
        c.execute("begin exclusive")
        params = {"lr": 10 ** random.uniform(-4, -2), "units": random.choice([16, 32, 64])}
        cur = c.execute("insert into trials (params, state) values (?, 'RUNNING')", (json.dumps(params),))
        c.execute("commit")
        c.close()
        return cur.lastrowid, params

    def report(self, trial, step, value):
        c = self._connect()
        c.execute("begin exclusive")
        c.execute("insert into steps values (?, ?, ?)", (trial, step, value))
        best = c.execute("select min(value) from steps where step = ?", (step,)).fetchone()[0]
        c.execute("commit")
        c.close()
        return value > 3 * best

    def tell(self, trial, value, state):
        c = self._connect()
        c.execute("begin exclusive")
        c.execute("update trials set value = ?, state = ? where id = ?", (value, state, trial))
        c.execute("commit")
        c.close()


if __name__ == "__main__":
    if sys.argv[1] == "init":
        Storage(sys.argv[2]).init()
