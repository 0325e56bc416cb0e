"""What must hold in a run: invariants after every turn, histories of what clients sent and were told."""
