from threading import Thread


class Heart(Thread):
    def run(self):
        print("beat")


def start():
    t = Thread(target=print, args=("x",))
    t.start()
