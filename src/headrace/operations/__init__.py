"""Operations on a cluster that the command line and other front ends share; nothing here prints or asks."""
