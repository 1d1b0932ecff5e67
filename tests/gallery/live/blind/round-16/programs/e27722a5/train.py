if __name__ == "__main__":
    from trainer import main

    main()
