// expect: thrown InternalError
throw new InternalError('interrupted')
