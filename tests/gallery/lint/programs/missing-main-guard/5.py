from multiprocessing import get_context

ctx = get_context("spawn")


class App:
    def start(self):
        self.p = ctx.Process(target=print, args=("hi",))
        self.p.start()


App().start()
