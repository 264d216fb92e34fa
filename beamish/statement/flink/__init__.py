"""Flink's SQL: a grammar that fills the same statement as that of ksqlDB (statement/grammar).

grammar         the query
declarations    what comes before it: CREATE TABLE, CREATE VIEW, SET
windows         window functions over TABLE, and windows under GROUP BY
joins           conditions of joins: keys and bounds in time
times           intervals and durations as text
"""
