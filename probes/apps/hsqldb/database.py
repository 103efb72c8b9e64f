"""HSQLDB within this process."""

import jpype

JARS = ["/usr/share/java/hsqldb.jar", "/usr/share/java/org.jpype.jar"]
URL = "jdbc:hsqldb:file:{};hsqldb.lock_file=false"
TEXTS = {"a": "a" * 3000, "b": "b" * 3000}


def opened(path, words=""):
    """A connection to the database, which is made where there is none; without commits of its own."""
    # An emulated processor has more work with compiled code than with interpreted code that runs this shortly.
    jpype.startJVM("-Xmx96m", "-XX:+UseSerialGC", "-Xint", classpath=JARS)
    jpype.JClass("org.hsqldb.jdbc.JDBCDriver")
    db = jpype.JClass("java.sql.DriverManager").getConnection(URL.format(path) + words)
    db.setAutoCommit(False)
    return db


def insert(db, n):
    """A transaction of a row in each table."""
    for table, text in TEXTS.items():
        db.createStatement().execute(f"INSERT INTO {table} VALUES ({n}, '{text}')")
    db.commit()


def rows(db, table):
    """The rows of a table, in order."""
    answer, found = db.createStatement().executeQuery(f"SELECT n, text FROM {table} ORDER BY n"), []
    while answer.next():
        found.append((int(answer.getInt(1)), str(answer.getString(2))))
    return found
