"""What a person says about checks in fairwitness.toml: which to run as well or otherwise, and which not to run."""

import re
from collections.abc import Iterable

from fairwitness.contracts.verify.checks import (
    CheckSpec,
    DeclaredCheck,
    Discovered,
    Language,
    Project,
    Undiscovered,
    VerifySettings,
)
from fairwitness.verify.discovery.specs import check_id, tier_of, time_of

SETTINGS = "fairwitness.toml"
SWITCHED_OFF = "switched off in fairwitness.toml"


def apply_settings(found: Discovered, settings: VerifySettings) -> Discovered:
    """The checks as the person wants them; what is switched off stays visible."""
    checks = {check.id: check for check in found.checks}
    for declared in settings.check:
        spec = declared_spec(declared, found.projects)
        checks[spec.id] = spec
    off = [checks.pop(id_) for id_ in dict.fromkeys(settings.disable) if id_ in checks]
    silenced = set(settings.disable)
    return Discovered(
        projects=found.projects,
        checks=tuple(sorted(checks.values(), key=lambda check: (check.tier, check.id))),
        undiscovered=(
            *(
                # a person said so: what could not be run is then not missed either
                each.model_copy(update={"required": False, "reason": f"{each.reason} ({SWITCHED_OFF})"})
                if each.id in silenced
                else each
                for each in found.undiscovered
                if each.id not in checks  # a declared check stands in for what could not be found
            ),
            *(_switched_off(check) for check in off),
        ),
    )


def declared_id(declared: DeclaredCheck) -> str:
    """The id of a declared check: its own, or one made of its folder and name."""
    return declared.id or check_id(declared.root, declared.name)


def declared_spec(declared: DeclaredCheck, projects: Iterable[Project]) -> CheckSpec:
    """A declared check as a command to run; tier and time follow from its name unless they are said."""
    said = declared.model_fields_set
    return CheckSpec(
        id=declared_id(declared),
        name=declared.name,
        tier=declared.tier if "tier" in said else tier_of(declared.name),
        root=declared.root,
        language=_language_of(declared, projects),
        tool=_tool_of(declared.argv),
        argv=declared.argv,
        report=declared.report,
        report_on=declared.report_on,
        select=declared.select,
        timeout_s=declared.timeout_s if "timeout_s" in said else time_of(declared.name),
        writes=declared.writes,
        required=declared.required,
        network=declared.network,
        found_in=SETTINGS,
    )


def _switched_off(check: CheckSpec) -> Undiscovered:
    return Undiscovered(
        id=check.id,
        name=check.name,
        root=check.root,
        required=False,
        reason=SWITCHED_OFF,
        found_in=check.found_in,
        next_step=f"remove {check.id} from disable in fairwitness.toml to run it",
    )


def _language_of(declared: DeclaredCheck, projects: Iterable[Project]) -> Language:
    """Whose environment the command needs: what its words ask for, else that of the project in its folder."""
    words = " ".join(declared.argv)
    if "{python}" in words:
        return Language.PYTHON
    if "{node_modules}" in words:
        return Language.NODE
    own = [project.language for project in projects if project.root == declared.root]
    return own[0] if len(own) == 1 else Language.OTHER


def _tool_of(argv: tuple[str, ...]) -> str:
    """The program whose version counts."""
    if len(argv) > 2 and argv[0] == "{python}" and argv[1] == "-m" and argv[2].strip():
        return argv[2]
    name = re.sub(r"[{}]", "", argv[0]).rpartition("/")[2]
    return name if name.strip() else "unknown"
