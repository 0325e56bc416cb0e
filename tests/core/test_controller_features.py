"""Features: finalised at the founding, changed only by UpdateFeatures, and only to what every broker supports."""

import pytest

from headrace.core.controller.features import SUPPORTED_FEATURES, FeatureUpdate, FeatureUpgrade
from headrace.core.controller.records import (
    BATCH_VERSION,
    METADATA_VERSION,
    SCAN_VERSION,
    TRANSACTION_VERSION,
    FeatureLevelRecord,
    FeatureRange,
)
from headrace.model.errors import ErrorCode
from tests.core.controllers import TestedController, one_broker

UPGRADE, SAFE, UNSAFE = FeatureUpgrade


def update(controller: TestedController, *updates: tuple[str, int, int], validate_only: bool = False) -> list[int]:
    wanted = [FeatureUpdate(*each) for each in updates]
    results = controller.carry_out(controller.update_features(wanted, validate_only=validate_only))
    assert [result.name for result in results] == [name for name, _, _ in updates]
    return [result.error for result in results]


class TestFounding:
    def test_a_new_cluster_has_the_latest_level_of_every_feature(self) -> None:
        assert one_broker().image.features == {feature.name: feature.level_max for feature in SUPPORTED_FEATURES}

    def test_a_cluster_keeps_what_it_has_when_a_newer_release_starts(self) -> None:
        controller = TestedController()
        controller.apply(FeatureLevelRecord(METADATA_VERSION, 25))
        controller.start_broker(1)
        assert controller.image.features == {METADATA_VERSION: 25}


class TestUpdates:
    def test_a_level_is_raised_and_lowered_explicitly(self) -> None:
        controller = one_broker()
        assert update(controller, (TRANSACTION_VERSION, 1, SAFE)) == [0]
        assert controller.image.features[TRANSACTION_VERSION] == 1
        assert update(controller, (TRANSACTION_VERSION, 2, UPGRADE), (SCAN_VERSION, 0, UNSAFE)) == [0, 0]
        assert controller.image.features[TRANSACTION_VERSION] == 2
        assert SCAN_VERSION not in controller.image.features

    def test_the_level_of_an_upgraded_cluster_is_raised(self) -> None:
        controller = TestedController()
        controller.apply(FeatureLevelRecord(METADATA_VERSION, 25))
        controller.start_broker(1)
        assert update(controller, (BATCH_VERSION, 1, UPGRADE)) == [0]
        assert controller.image.features[BATCH_VERSION] == 1

    def test_a_validation_changes_nothing(self) -> None:
        controller = one_broker()
        assert update(controller, (TRANSACTION_VERSION, 1, SAFE), validate_only=True) == [0]
        assert controller.image.features[TRANSACTION_VERSION] == 2

    def test_one_refused_update_refuses_all(self) -> None:
        controller = one_broker()
        errors = update(controller, (TRANSACTION_VERSION, 1, SAFE), ("unknown.version", 1, UPGRADE))
        assert errors == [0, ErrorCode.INVALID_UPDATE_VERSION]
        assert controller.image.features[TRANSACTION_VERSION] == 2

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            (("unknown.version", 1, UPGRADE), 'does not know the feature "unknown.version": use one of metadata.ver'),
            ((METADATA_VERSION, 28, UPGRADE), "supports metadata.version 25 to 27, not 28"),
            ((METADATA_VERSION, 0, UNSAFE), "supports metadata.version 25 to 27, not 0"),
            ((TRANSACTION_VERSION, -1, SAFE), "not -1"),
            ((TRANSACTION_VERSION, 1, UPGRADE), "transaction.version is at 2: ask for a downgrade"),
            ((TRANSACTION_VERSION, 1, 9), "transaction.version is at 2: ask for a downgrade"),
        ],
    )
    def test_levels_that_cannot_be_used_are_refused(self, wanted: tuple[str, int, int], message: str) -> None:
        controller = one_broker()
        decision = controller.update_features([FeatureUpdate(*wanted)])
        assert decision.records == ()
        (result,) = decision.response
        assert result.error == ErrorCode.INVALID_UPDATE_VERSION
        assert result.message is not None
        assert message in result.message

    @pytest.mark.parametrize("upgrade_type", [SAFE, UNSAFE])
    def test_the_level_of_the_metadata_log_is_never_lowered(self, upgrade_type: int) -> None:
        controller = one_broker()  # its registration has a boot id, which level 25 cannot express
        wanted = [FeatureUpdate(METADATA_VERSION, 25, upgrade_type)]
        (result,) = controller.carry_out(controller.update_features(wanted))
        assert result.error == ErrorCode.INVALID_UPDATE_VERSION
        assert result.message == (
            "metadata.version is at 27 and cannot be lowered: the metadata may contain what level 25 cannot express"
        )
        assert controller.image.metadata_version == 27

    def test_a_downgrade_does_not_raise_a_level(self) -> None:
        controller = one_broker()
        update(controller, (TRANSACTION_VERSION, 0, SAFE))
        assert update(controller, (TRANSACTION_VERSION, 1, SAFE)) == [ErrorCode.INVALID_UPDATE_VERSION]

    def test_a_level_that_one_broker_does_not_support_is_refused(self) -> None:
        controller = TestedController()
        controller.apply(FeatureLevelRecord(METADATA_VERSION, 25))
        controller.start_broker(1)
        older = [FeatureRange(METADATA_VERSION, 25, 25), FeatureRange(TRANSACTION_VERSION, 0, 1)]
        controller.register(2, features=older)  # a fenced broker counts too: it may return
        (result,) = controller.update_features([FeatureUpdate(TRANSACTION_VERSION, 2, UPGRADE)]).response
        assert result.error == ErrorCode.INVALID_UPDATE_VERSION
        assert result.message is not None
        assert "broker 2 does not support transaction.version 2" in result.message
        assert update(controller, (TRANSACTION_VERSION, 1, UPGRADE)) == [0]
        assert update(controller, (BATCH_VERSION, 1, UPGRADE)) == [ErrorCode.INVALID_UPDATE_VERSION]

    def test_a_feature_is_listed_once(self) -> None:
        controller = one_broker()
        twice = [FeatureUpdate(TRANSACTION_VERSION, 1, SAFE)] * 2
        assert {result.error for result in controller.update_features(twice).response} == {ErrorCode.INVALID_REQUEST}
