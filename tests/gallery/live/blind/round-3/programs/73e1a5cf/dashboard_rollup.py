"""Rebuilds the summary tables of the study page now and then."""
import sqlite3
import sys
import time

while True:
    time.sleep(14)
    c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
    c.execute("begin exclusive")
    t_end = time.time() + 8
    c.execute("create table if not exists summary (step integer, n integer, best real)")
    while time.time() < t_end:
        c.execute("delete from summary")
        c.execute("insert into summary select step, count(*), min(value) from steps group by step")
        time.sleep(0.2)
    c.execute("commit")
    c.close()
    print(time.strftime("%T"), "summary rebuilt", flush=True)
