"""The broker that responses name as the controller."""

from headrace.broker.api.context import RequestContext
from headrace.model.ids import NO_NODE, NodeId


def controller_id(ctx: RequestContext) -> NodeId:
    """Return the active controller if clients can reach it as a broker, else any live broker, which forwards to it."""
    live = [node_id for node_id, _ in ctx.image.endpoints(ctx.listener_name)]
    active = ctx.controller.active_controller
    if active in live:
        return active
    return live[ctx.entropy.below(len(live))] if live else NO_NODE
