"""What reading and validating an agent's document costs beside the bare YAML parse of the same text."""

import json
from pathlib import Path

import yaml

from bench.measure import medians, report
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.kit.documents import Format, read

FIXTURE = Path(__file__).parent.parent / "tests" / "fixtures" / "seeds" / "000" / "verification-report.yaml"
LINES = 200


def _two_hundred_lines() -> str:
    """The seed's own report with its findings repeated until it is as long as a real one."""
    lines = FIXTURE.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("- check_name"))
    finding = lines[first : first + 8]
    while len(lines) < LINES:
        lines[first:first] = finding
    return "\n".join(lines) + "\n"


def run() -> bool:
    """Prints the ratios of reading one document."""
    text = _two_hundred_lines()
    data = text.encode()
    value = yaml.load(text, Loader=yaml.CSafeLoader)
    VerificationReport.model_validate(value)
    as_json = json.dumps(value).encode()
    measured = medians(
        {
            "yaml.load with CSafeLoader": lambda: yaml.load(text, Loader=yaml.CSafeLoader),
            "strict read": lambda: read(data, Format.YAML),
            "strict read and validate": lambda: VerificationReport.model_validate(read(data, Format.YAML).value),
            "the same from JSON": lambda: VerificationReport.model_validate(read(as_json, Format.JSON).value),
        },
        rounds=300,
    )
    title = f"agent document of {len(text.splitlines())} lines"
    return report(title, measured, "yaml.load with CSafeLoader", {"strict read and validate": 1.3})
