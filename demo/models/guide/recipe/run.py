"""The whole recipe in one command: tokenizer, training, export, checks, evaluation.

python3 run.py            a bit over two hours of two free cores; writes the model's files in the folder above
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
# The trunk, from which the rate falls to nothing; then five times more from a rate that is raised anew.
STAGES = ['--steps 5941', '--finish 2300', '--finish 1650 --again --rate 0.0016', '--finish 7000 --again --rate 0.002', '--finish 2000 --again --rate 0.0011',
          '--finish 5100 --again --rate 0.0018', '--finish 1850 --again --rate 0.0012']
QUICK = ['--steps 80', '--finish 30', '--finish 10 --again --rate 0.001']


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true')
    args.add_argument('--resume', action='store_true', help='go on with the training that was cut')
    args = args.parse_args()
    env = dict(os.environ)
    if args.quick:
        env |= {'GUIDE_WORK': str(WORK_DIR / 'quick'), 'GUIDE_OUT': env.get('GUIDE_OUT', str(WORK_DIR / 'quick' / 'model'))}
    work, out = Path(env.get('GUIDE_WORK', WORK_DIR)), Path(env.get('GUIDE_OUT', MODEL_DIR))

    def step(*command):
        print('>', *command, flush=True)
        subprocess.run([sys.executable, *command], cwd=HERE, env=env, check=True)

    if not args.resume:
        for name in ('train.log', 'trunk.pt', 'branch.pt', 'checkpoint.pt', 'stages'):
            (work / name).unlink(missing_ok=True)
        step('tokenizer.py')
    size = ['--chats', '2000', '--every', '10'] if args.quick else []
    done = work / 'stages'
    for number, stage in enumerate(QUICK if args.quick else STAGES):
        if number >= (int(done.read_text()) if done.exists() else 0):
            step('train.py', *stage.split(), *size)
            done.write_text(str(number + 1))
    step('export.py')
    step('check.py')
    step('evaluate.py', *(['--sample', '2'] if args.quick else []))
    if not args.quick:
        shutil.copy(work / 'train.log', HERE / 'train.log')
    print(f'The model is in {out}. To compare with the JavaScript libraries: node {HERE / "check.mjs"} {work / "cases.json"} {out}')


if __name__ == '__main__':
    main()
