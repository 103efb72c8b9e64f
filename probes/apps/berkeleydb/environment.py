"""A transactional environment of Berkeley DB, and a database in it."""

from pathlib import Path

from bsddb3 import db

METHODS = {"btree": db.DB_BTREE, "hash": db.DB_HASH}
PARTS = db.DB_INIT_TXN | db.DB_INIT_LOG | db.DB_INIT_MPOOL | db.DB_INIT_LOCK | db.DB_PRIVATE
PAGE = 512
"""What the disk writes as a whole (bytes): of larger pages Berkeley DB promises nothing when a write of one is torn."""


def opened(folder, flags):
    """The environment in ``folder``/env and its database, opened with more ``flags``."""
    environment = db.DBEnv()
    environment.set_lg_max(256 << 10)
    environment.open(f"{folder}/env", PARTS | db.DB_CREATE | flags)
    database = db.DB(environment)
    database.set_pagesize(PAGE)
    method = METHODS[Path(__file__).with_name("access-method").read_text().strip()]
    database.open("records.db", dbtype=method, flags=db.DB_CREATE | db.DB_AUTO_COMMIT)
    return environment, database


def put(environment, database, n):
    """A transaction of two records."""
    transaction = environment.txn_begin()
    database.put(b"a%d" % n, b"a" * 1500, transaction)
    database.put(b"b%d" % n, b"b" * 1500, transaction)
    transaction.commit()
