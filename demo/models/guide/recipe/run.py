"""The whole recipe in one command: tokenizer, training, export, checks, evaluation.

python3 run.py            meant for two and a half hours of two free cores; writes the model's files in the folder above
python3 run.py --quick    under five minutes; writes a model that loads, but knows nothing, to the work folder
python3 run.py --resume   goes on where it was cut; what is done is not done again
"""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from settings import MODEL_DIR, WORK_DIR

HERE = Path(__file__).resolve().parent
STEPS, FINISH = 14_000, 3_000


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true')
    args.add_argument('--resume', action='store_true', help='go on with the training that was cut')
    args.add_argument('--steps', type=int, help=f'of the trunk; default {STEPS}')
    args.add_argument('--finish', type=int, help=f'steps of falling rate after it; default {FINISH}')
    args = args.parse_args()
    steps, finish = args.steps or (80 if args.quick else STEPS), args.finish or (30 if args.quick else FINISH)
    env = dict(os.environ)
    if args.quick:
        env |= {'GUIDE_WORK': str(WORK_DIR / 'quick'), 'GUIDE_OUT': env.get('GUIDE_OUT', str(WORK_DIR / 'quick' / 'model'))}
    work, out = Path(env.get('GUIDE_WORK', WORK_DIR)), Path(env.get('GUIDE_OUT', MODEL_DIR))

    def step(*command):
        print('>', *command, flush=True)
        subprocess.run([sys.executable, *command], cwd=HERE, env=env, check=True)

    if not args.resume:
        for name in ('train.log', 'trunk.pt', 'branch.pt', 'checkpoint.pt'):
            (work / name).unlink(missing_ok=True)
        step('tokenizer.py')
    size = ['--chats', '2000', '--every', '10'] if args.quick else []
    step('train.py', '--steps', str(steps), *size)
    step('train.py', '--finish', str(finish), *size)
    step('export.py')
    step('check.py')
    step('evaluate.py', *(['--sample', '2'] if args.quick else []))
    if not args.quick:
        shutil.copy(work / 'train.log', HERE / 'train.log')
    print(f'The model is in {out}. To compare with the JavaScript libraries: node {HERE / "check.mjs"} {work / "cases.json"} {out}')


if __name__ == '__main__':
    main()
