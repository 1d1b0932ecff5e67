# run on node3 before the job: what an earlier job has left on its local disk
mkdir -p /run/asr
cp older_train_asr.py /run/asr/train_asr.py
cp model.py /run/asr/
