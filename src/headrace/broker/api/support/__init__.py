"""Steps that the handlers of several APIs share."""
