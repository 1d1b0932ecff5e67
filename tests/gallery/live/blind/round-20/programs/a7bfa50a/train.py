if __name__ == "__main__":
    from fitting import main

    main()
