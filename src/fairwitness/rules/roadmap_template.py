"""What `fairwitness autopilot init` writes: a roadmap to fill in, and the project's settings as they were detected."""

import json

from fairwitness.contracts.autopilot.roadmap import (
    DEFAULT_SPEC_PATHS,
    CommandKind,
    CommandsSource,
    Project,
    ProjectConfig,
)
from fairwitness.rules.commands import Detected

ROADMAP_TEMPLATE = """\
# Roadmap

<!--
Fair Witness reads this file and never writes it. Each phase stands here twice: as a line of the list, and under a heading
with its details. While a run rests on this file, it must not change.

Numbers:          6 for a planned phase, 6.1 for one that was inserted after it.
Type:             ui, protocol, data or mixed; mixed if the line is left out.
Depends on:       phases such as "Phase 1, Phase 2.1 (uses its tables)", or "Nothing".
Success Criteria: what can be seen when the phase is done. A criterion that ends in "verified by" and a command in
                  backticks is decided by that command.
-->

## Phases

- [ ] **Phase 1: First slice** - the smallest thing that works from end to end
- [ ] **Phase 2: Second slice** - what comes next

## Phase Details

### Phase 1: First slice

**Goal**: TBD: one sentence that says what is true for a user when this phase is done.
**Type**: mixed
**Depends on**: Nothing
**Requirements**: REQ-01
**Success Criteria**:

1. The README says how to start it, verified by `grep -qi start README.md`
2. Somebody who has never seen it can use it

**Plans**: made by the run

### Phase 2: Second slice

**Goal**: TBD: one sentence that says what is true for a user when this phase is done.
**Type**: mixed
**Depends on**: Phase 1 (builds on it)
**Requirements**: REQ-02
**Success Criteria**:

1. What phase 1 did is still true, verified by `grep -qi start README.md`

**Plans**: made by the run
"""


def config_template(detected: Detected) -> str:
    """The settings file of a project of which only the manifests are known.

    A command that was not detected is left out rather than null: null is for a person to say.
    """
    project = Project(
        type=detected.type,
        manifest=detected.manifest,
        commands={kind: detected.commands[kind] for kind in CommandKind if kind in detected.commands},
        commands_source=CommandsSource.AUTO_DETECTED,
        spec_paths=DEFAULT_SPEC_PATHS,
    )
    return json.dumps(ProjectConfig(project=project).plain(), indent=2, ensure_ascii=False) + "\n"
