if __name__ == "__main__":
    from training import main

    main()
