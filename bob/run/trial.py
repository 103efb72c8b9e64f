"""A quick question from end to end: some operations, recorded once for each way to finish, their crash states explored,
and what is expected of them.

The run directory has what a probe's has, with the answers as its result.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from bob.answer.result import Result, Run
from bob.image import Image, check_file_system, check_kernel
from bob.judge.question import Trial, judge_question
from bob.progress import Progress
from bob.run.agents import check_image, guests_of, image_called, jobs_for
from bob.run.pipeline import Pipeline
from bob.run.prober import environment_of
from bob.run.tasks import Task
from bob.run.timings import TimedWork, timed
from bob.schema import encode
from bob.store.lock import writing
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import RUNS, RunDirectory, new_identity, now
from bob.subject.subject import ConfigurationDocument
from bob.version import __version__
from bob.workload.plain import workload_to_json


def try_out(trial: Trial, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """The answers to ``trial``, and the run directory with everything behind them: ``out``, or a new one in ./bob-runs.

    Raises UsageError before anything is started for a file system that the image's kernel does not have, and in the
    machine's own words when mkfs or the kernel refuse the configuration; RecordingError where no recording can be had,
    or none can be believed. Where that is so of some, what does not break in the others is unknown.
    """
    request, identity, started = trial.request, new_identity(), now()
    check_image(request.image)
    image = image_called(request.image, progress.step, request.host.connect)
    check_kernel(image)
    check_file_system(image, request.configuration.fs.module, request.configuration.fs.package)
    about = {
        "id": identity,
        "started": started,
        "bob": __version__,
        "configuration": encode(ConfigurationDocument.of(request.configuration)),
        "workloads": [workload_to_json(workload) for workload in trial.workloads],
        "expectations": [expectation.text for expectation in trial.expectations],
        "at": trial.workloads[0].at.value,
    }
    path = out if out is not None else RUNS / identity
    with withdrawn_if_refused(path, "workloads/*"):
        return _tried(trial, RunDirectory.create(path, about), image, progress), path


def _tried(trial: Trial, run: RunDirectory, image: Image, progress: Progress) -> Result:
    """The answers to ``trial``, with everything behind them in ``run``."""
    request, about = trial.request, run.about()
    with writing([run.path]), guests_of(image, request.host.connect, progress.step) as hypervisor:
        environment = environment_of(hypervisor, image, request)
        run.note(environment=asdict(environment))
        progress.planned(len(trial.workloads), len(trial.workloads) * request.budget)
        task = Task(request.configuration, request.model, request.effort, run, trial.workloads)
        guests, count = jobs_for(image.name, request.host.jobs), len(trial.workloads)
        work = TimedWork.of("try", request, guests, count)
        with timed([work], progress) as watcher, Pipeline(hypervisor, image, [task], watcher, guests) as pipeline:
            for number in range(len(trial.workloads)):
                pipeline.result(0, number)  # which the run directory keeps
        found = Run(about["id"], about["started"], now(), __version__, request.seed, request.budget)
        result = judge_question(trial, run, found, environment)
        run.save_result(result)
        run.note(finished=found.finished)
    return result
