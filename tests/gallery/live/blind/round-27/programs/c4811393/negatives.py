import sqlite3

import torch


SCHEMA = """
CREATE TABLE IF NOT EXISTS negatives (
    query_id INTEGER NOT NULL,
    doc_id INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (query_id, doc_id)
)
"""


class NegativeStore:
    """Mined hard negatives, shared by all processes of a run through one database file."""

    def __init__(self, path, commit_every=512):
        self.conn = sqlite3.connect(path, timeout=7200)
        self.commit_every = commit_every
        self.pending = 0

    def create(self):
        self.conn.execute(SCHEMA)
        self.conn.commit()

    def lookup(self, query_id, limit=4):
        rows = self.conn.execute(
            "SELECT doc_id FROM negatives WHERE query_id = ? ORDER BY score DESC LIMIT ?", (query_id, limit)
        ).fetchall()
        return [r[0] for r in rows]

    def add(self, query_id, docs, scores):
        rows = [(query_id, int(d), float(s)) for d, s in zip(docs, scores)]
        self.conn.executemany("INSERT OR REPLACE INTO negatives VALUES (?, ?, ?)", rows)
        self.pending += len(rows)
        if self.pending >= self.commit_every:
            self.conn.commit()
            self.pending = 0


def mine(encoder, query, corpus, k=4):
    with torch.no_grad():
        scores = encoder(query.unsqueeze(0)) @ encoder(corpus).t()
        top = scores.squeeze(0).topk(k)
    return top.indices.tolist(), top.values.tolist()
