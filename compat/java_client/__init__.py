"""Programs for the Java client that are tests of a broker: compiled and run where Maven and a JDK are at hand."""
