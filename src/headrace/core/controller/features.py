"""Features: the levels that this release supports, and decisions about the levels that a cluster has finalised.

The founding of a cluster finalises the latest level of every feature. From then on only UpdateFeatures changes them
(KIP-584), never the start of a node: a level is safe once every registered broker supports it.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.core.controller.commands import ControllerDecision, Refused
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    BATCH_VERSION,
    BATCH_VERSION_LATEST,
    GROUP_VERSION,
    GROUP_VERSION_LATEST,
    METADATA_VERSION,
    METADATA_VERSION_LATEST,
    METADATA_VERSION_MIN,
    SCAN_VERSION,
    SCAN_VERSION_LATEST,
    TRANSACTION_VERSION,
    TRANSACTION_VERSION_LATEST,
    FeatureLevelRecord,
    FeatureRange,
)
from headrace.model.errors import ErrorCode

SUPPORTED_FEATURES = (
    FeatureRange(METADATA_VERSION, METADATA_VERSION_MIN, METADATA_VERSION_LATEST),
    FeatureRange(GROUP_VERSION, 0, GROUP_VERSION_LATEST),
    FeatureRange(TRANSACTION_VERSION, 0, TRANSACTION_VERSION_LATEST),
    FeatureRange(BATCH_VERSION, 0, BATCH_VERSION_LATEST),
    FeatureRange(SCAN_VERSION, 0, SCAN_VERSION_LATEST),
)
"""The features of this release; level 0 means that a cluster does not use the feature."""

FEATURES_PER_REQUEST_MAX = 100


class FeatureUpgrade(IntEnum):
    """The upgrade types of UpdateFeatures: a decision to lower a level must be explicit."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    upgrade_type: int


class FeatureResult(NamedTuple):
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def found_cluster(image: MetadataImage) -> ControllerDecision[None]:
    """Finalise the latest level of every feature; a cluster that has finalised any keeps what it has."""
    if image.features:
        return ControllerDecision((), None)
    return ControllerDecision(
        tuple(FeatureLevelRecord(feature.name, feature.level_max) for feature in SUPPORTED_FEATURES), None
    )


def unsupported_feature(finalised: Mapping[str, int], supported: Iterable[FeatureRange]) -> str | None:
    """Return why a broker with these ranges cannot be in a cluster with these levels; None if it can."""
    ranges = {feature.name: feature for feature in supported}
    for name, level in finalised.items():
        feature = ranges.get(name)
        if feature is None:
            return f"the cluster uses {name} {level}, which this broker does not know: start a newer release"
        if not feature.level_min <= level <= feature.level_max:
            return (
                f"the cluster uses {name} {level}, this broker supports {feature.level_min} to {feature.level_max}: "
                "start a release that supports it, or change the level by UpdateFeatures"
            )
    return None


def update_features(
    image: MetadataImage, updates: Sequence[FeatureUpdate], *, validate_only: bool
) -> ControllerDecision[tuple[FeatureResult, ...]]:
    """Change finalised levels, all of them or none; every result has the error of its own feature."""
    records: list[FeatureLevelRecord] = []
    results: list[FeatureResult] = []
    for update in updates:
        try:
            if len(updates) > FEATURES_PER_REQUEST_MAX:
                raise Refused(
                    ErrorCode.INVALID_REQUEST, f"one request may change at most {FEATURES_PER_REQUEST_MAX} features"
                )
            if sum(other.name == update.name for other in updates) > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"{update.name} is listed more than once")
            _check_update(image, update)
        except Refused as refusal:
            results.append(FeatureResult(update.name, refusal.code, refusal.message))
            continue
        results.append(FeatureResult(update.name))
        if update.level != image.features.get(update.name, 0):
            records.append(FeatureLevelRecord(update.name, update.level))
    refused = any(result.error for result in results)
    return ControllerDecision(() if refused or validate_only else tuple(records), tuple(results))


def _check_update(image: MetadataImage, update: FeatureUpdate) -> None:
    name, level = update.name, update.level
    feature = next((feature for feature in SUPPORTED_FEATURES if feature.name == name), None)
    if feature is None:
        known = ", ".join(feature.name for feature in SUPPORTED_FEATURES)
        raise _invalid(f'the controller does not know the feature "{name[:100]}": use one of {known}')
    if not feature.level_min <= level <= feature.level_max:
        raise _invalid(f"the controller supports {name} {feature.level_min} to {feature.level_max}, not {level}")
    current = image.features.get(name, 0)
    if level < current and update.upgrade_type not in (FeatureUpgrade.SAFE_DOWNGRADE, FeatureUpgrade.UNSAFE_DOWNGRADE):
        raise _invalid(f"{name} is at {current}: ask for a downgrade to lower it to {level}")
    if name == METADATA_VERSION and level < current:
        raise _invalid(
            f"{name} is at {current} and cannot be lowered: the metadata may contain what level {level} cannot express"
        )
    if level > current and update.upgrade_type != FeatureUpgrade.UPGRADE:
        raise _invalid(f"{name} is at {current}: ask for an upgrade to raise it to {level}")
    for broker in image.brokers.values():
        reason = unsupported_feature({name: level} if level else {}, broker.features)
        if reason is not None:
            raise _invalid(
                f"broker {broker.node_id} does not support {name} {level}: "
                "start a newer release on it, or unregister it if it is gone"
            )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_UPDATE_VERSION, message)
