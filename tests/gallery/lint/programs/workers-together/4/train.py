import yaml
from pipeline import Pipeline

with open("config.yaml") as file:
    CONFIG = yaml.safe_load(file)


def main():
    Pipeline(CONFIG, [], []).fit(print)


if __name__ == "__main__":
    main()
