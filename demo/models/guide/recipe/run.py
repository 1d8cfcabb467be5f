"""The whole recipe in one command: tokenizer, training, export, checks, evaluation.

python3 run.py            about an hour of two cores; writes the model's files in the folder above
python3 run.py --quick    under five minutes; writes a model that loads, but knows little, to the work folder
"""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from settings import MODEL_DIR, WORK_DIR

HERE = Path(__file__).resolve().parent


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true')
    args.add_argument('--minutes', type=float, help='of training; default 56, quick: 2')
    args.add_argument('--resume', action='store_true', help='go on with the training that was cut')
    args = args.parse_args()
    minutes = args.minutes or (2 if args.quick else 56)
    env = dict(os.environ)
    if args.quick:
        env |= {'GUIDE_WORK': str(WORK_DIR / 'quick'), 'GUIDE_OUT': env.get('GUIDE_OUT', str(WORK_DIR / 'quick' / 'model'))}
    work, out = Path(env.get('GUIDE_WORK', WORK_DIR)), Path(env.get('GUIDE_OUT', MODEL_DIR))

    def step(*command):
        print('>', *command, flush=True)
        subprocess.run([sys.executable, *command], cwd=HERE, env=env, check=True)

    if not args.resume:
        (work / 'train.log').unlink(missing_ok=True)
        step('tokenizer.py')
    step('train.py', '--minutes', str(minutes), '--every', '50', *([] if args.resume else ['--fresh']))
    step('export.py')
    step('check.py')
    step('evaluate.py', *(['--sample', '20'] if args.quick else []))
    if not args.quick:
        shutil.copy(work / 'train.log', HERE / 'train.log')
    print(f'The model is in {out}. To compare with the JavaScript libraries: node {HERE / "check.mjs"} {work / "cases.json"} {out}')


if __name__ == '__main__':
    main()
