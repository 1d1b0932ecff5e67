import os
import random
import sys

words = "the court held that section of act shall apply under notice appeal order party bench".split()
acts = ["Indian Penal Code", "Evidence Act", "Companies Act", "Income Tax Act"]
rng = random.Random(5)
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for shard in range(2):
    with open(os.path.join(out, f"judgments-{shard}.txt"), "w") as f:
        for i in range(6000):
            body = " ".join(rng.choice(words) for _ in range(24))
            name = rng.choice(acts)
            if shard == 1 and i == 2210:
                name = "MINISTRYOFCORPORATEAFFAIRSNOTIFICATIONDEPARTMENT_2013"
            f.write(f"{name}\t{body}\n")
