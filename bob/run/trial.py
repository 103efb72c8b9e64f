"""A quick question from end to end: bob records it once for each finish, explores the crash states, and judges what it
expects. The run directory is like a probe's, with the answers as its result."""

from __future__ import annotations

from pathlib import Path

from bob.answer.result import Result, Run
from bob.image import check_file_system, check_kernel
from bob.judge.question import Trial, judge_question
from bob.progress import Progress
from bob.run.agents import check_image, image_called
from bob.run.prober import begin, prober
from bob.schema import encode
from bob.store.lock import writing
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import RunDirectory, now
from bob.subject.subject import ConfigurationDocument
from bob.version import __version__
from bob.workload.plain import workload_to_json


def try_out(trial: Trial, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Return the answers to ``trial``, and the run directory: ``out``, or a new one in ./bob-runs. Raise UsageError if
    the kernel lacks the file system (before a guest starts), or mkfs or the kernel refuses it. Raise RecordingError if
    all recordings fail. If only some do, an expectation that holds in the others is unknown."""
    request = trial.request
    path, about = begin(out)
    check_image(request.image)
    image = image_called(request.image, progress.step, request.host.connect)
    check_kernel(image)
    check_file_system(image, request.configuration.fs.module, request.configuration.fs.package)
    asked = {
        "configuration": encode(ConfigurationDocument.of(request.configuration)),
        "workloads": [workload_to_json(workload) for workload in trial.workloads],
        "expectations": [expectation.text for expectation in trial.expectations],
        "at": trial.workloads[0].at.value,
    }
    with withdrawn_if_refused(path, "workloads/*"):
        run = RunDirectory.create(path, {**about, **asked})
        with writing([path]):
            with prober([(run, request)], progress, image, "try") as machine:
                environment = machine.explore(0)
            found = Run(about["id"], about["started"], now(), __version__, request.seed, request.budget)
            result = judge_question(trial, run, found, environment)
            run.save_result(result)
            run.note(finished=found.finished)
        return result, path
