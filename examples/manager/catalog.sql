-- What programs that follow the catalog read: its changes, by the plugin that PostgreSQL has built in.
CREATE PUBLICATION headrace_catalog FOR ALL TABLES;
SELECT pg_create_logical_replication_slot('headrace_catalog', 'pgoutput');
