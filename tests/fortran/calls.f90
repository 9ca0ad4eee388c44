! The Fortran modules as a program uses them: arrays and their axes, texts, errors, training, files.
module hooks
  use mixtape
  implicit none
contains
  subroutine count_step(context, record) bind(C)
    type(c_ptr), value :: context
    type(mix_step_record), intent(in) :: record
    integer, pointer :: count
    call c_f_pointer(context, count)
    if (record%step == count + 1 .and. record%loss >= 0) count = count + 1
  end subroutine count_step
end module hooks

program calls
  use mixtape
  use checks
  use hooks
  implicit none
  type(c_ptr) :: scope
  integer :: steps_seen = 0
  scope = mix_scope_begin()
  call arrays_of_every_rank()
  call doubles_of_every_rank()
  call arrays_of_every_type()
  call sections_and_empty_arrays()
  call wrong_shapes()
  call missing_files()
  call long_messages()
  call errors_that_wait()
  call errors_of_the_program()
  call texts_are_trimmed()
  call texts_in_lists()
  call too_many_items()
  call options_by_hand()
  call training()
  call files()
  call restart_files()
  call callbacks()
  call wrong_objects()
  call scopes_end()
  call end_cases(19)

contains

  ! Element (i, j, k, l) of Fortran is element (l, k, j, i) of C, so that its value tells every index.
  subroutine arrays_of_every_rank()
    real(c_float) :: a(2), b(2, 3), c(2, 3, 4), d(2, 3, 4, 5)
    real(c_float) :: a2(2), b2(2, 3), c2(2, 3, 4), d2(2, 3, 4, 5)
    integer :: i, j, k, l
    type(c_ptr) :: t
    call begin_case("arrays_of_every_rank")
    a = [(real(i), i = 1, 2)]
    b = reshape([((real(10*j + i), i = 1, 2), j = 1, 3)], shape(b))
    c = reshape([(((real(100*k + 10*j + i), i = 1, 2), j = 1, 3), k = 1, 4)], shape(c))
    d = reshape([((((real(1000*l + 100*k + 10*j + i), i = 1, 2), j = 1, 3), k = 1, 4), l = 1, 5)], shape(d))
    t = mix_tensor_from_array(a)
    call check(has_dims(t, [2]) .and. element(t, [1]) == 2., "rank 1")
    call mix_tensor_to_array(t, a2)
    call check(all(a2 == a), "rank 1 comes back")
    t = mix_tensor_from_array(b)
    call check(has_dims(t, [3, 2]) .and. element(t, [2, 0]) == 31., "rank 2")
    call mix_tensor_to_array(t, b2)
    call check(all(b2 == b), "rank 2 comes back")
    t = mix_tensor_from_array(c)
    call check(has_dims(t, [4, 3, 2]) .and. element(t, [3, 1, 0]) == 421., "rank 3")
    call mix_tensor_to_array(t, c2)
    call check(all(c2 == c), "rank 3 comes back")
    t = mix_tensor_from_array(d)
    call check(has_dims(t, [5, 4, 3, 2]) .and. element(t, [4, 2, 1, 0]) == 5321., "rank 4")
    call mix_tensor_to_array(t, d2)
    call check(all(d2 == d), "rank 4 comes back")
  end subroutine arrays_of_every_rank

  ! The same in real64, with a last bit that real32 has not; what is read has the axes that were given.
  subroutine doubles_of_every_rank()
    real(c_double), parameter :: bit = 2._c_double**(-40)
    real(c_double) :: a(2), b(2, 3), c(2, 3, 4), d(2, 3, 4, 5)
    real(c_double) :: a2(2), b2(2, 3), c2(2, 3, 4), d2(2, 3, 4, 5)
    integer :: i, j, k, l, stat
    type(c_ptr) :: t(4)
    call begin_case("doubles_of_every_rank")
    a = [(i + bit, i = 1, 2)]
    b = reshape([((10*j + i + bit, i = 1, 2), j = 1, 3)], shape(b))
    c = reshape([(((100*k + 10*j + i + bit, i = 1, 2), j = 1, 3), k = 1, 4)], shape(c))
    d = reshape([((((1000*l + 100*k + 10*j + i + bit, i = 1, 2), j = 1, 3), k = 1, 4), l = 1, 5)], shape(d))
    t = [mix_tensor_from_array(a), mix_tensor_from_array(b), mix_tensor_from_array(c), &
         mix_tensor_from_array(d)]
    call check(all([(mix_tensor_dtype(t(i)) == MIX_FLOAT64, i = 1, 4)]), "float64 of each rank")
    call check(has_dims(t(4), [5, 4, 3, 2]) .and. element(t(4), [4, 2, 1, 0]) == 5321., "rank 4")
    call mix_tensor_to_array(t(1), a2)
    call mix_tensor_to_array(t(2), b2)
    call mix_tensor_to_array(t(3), c2)
    call mix_tensor_to_array(t(4), d2)
    call check(all(a2 == a) .and. all(b2 == b) .and. all(c2 == c) .and. all(d2 == d), "they come back")
    call mix_tensor_to_array(t(3), b2, stat=stat)
    call check(stat == MIX_VALUE_ERROR .and. all(b2 == b), "rank 3 does not go into rank 2")
  end subroutine doubles_of_every_rank

  logical function has_dims(tensor, dims)
    type(c_ptr), intent(in) :: tensor
    integer, intent(in) :: dims(:)
    type(mix_shape) :: own
    own = mix_tensor_shape(tensor)
    has_dims = own%rank == size(dims)
    if (has_dims) has_dims = all(own%dims(:own%rank) == dims)
  end function has_dims

  ! The element at C's indices, which count from 0.
  real function element(tensor, indices)
    type(c_ptr), intent(in) :: tensor
    integer, intent(in) :: indices(:)
    integer :: i
    element = real(mix_tensor_item(mix_slice(tensor, mix_shape_of(indices), &
                                             mix_shape_of([(1, i = 1, size(indices))]))))
  end function element

  ! Powers of two and their sums are exact in every type.
  subroutine arrays_of_every_type()
    real(c_float) :: r32(3)
    real(c_double) :: r64(3)
    integer(c_int32_t) :: i32(3)
    integer(c_int64_t) :: i64(3)
    type(c_ptr) :: t
    call begin_case("arrays_of_every_type")
    t = mix_tensor_from_array([1._c_double + 2._c_double**(-40), -2.5_c_double, 7._c_double])
    call check(mix_tensor_dtype(t) == MIX_FLOAT64, "real64 is float64")
    call mix_tensor_to_array(t, r64)
    call check(all(r64 == [1._c_double + 2._c_double**(-40), -2.5_c_double, 7._c_double]), "all of its bits")
    call mix_tensor_to_array(t, r32)
    call check(all(r32 == [1._c_float, -2.5_c_float, 7._c_float]), "read as real32")
    t = mix_tensor_from_array([1_c_int32_t, -2_c_int32_t, huge(1_c_int32_t)])
    call check(mix_tensor_dtype(t) == MIX_INT32, "int32 is int32")
    call mix_tensor_to_array(t, i64)
    call check(all(i64 == [1_c_int64_t, -2_c_int64_t, 2147483647_c_int64_t]), "read as int64")
    t = mix_tensor_from_array([1_c_int64_t, -2_c_int64_t, 7_c_int64_t])
    call check(mix_tensor_dtype(t) == MIX_INT64, "int64 is int64")
    call mix_tensor_to_array(t, i32)
    call check(all(i32 == [1, -2, 7]), "read as int32")
    t = mix_tensor_from_array([0.5, 0.25, 3.])
    call check(mix_tensor_dtype(t) == MIX_FLOAT32, "real32 is float32")
    t = mix_cast(t, MIX_FLOAT16)
    call mix_tensor_to_array(t, r32)
    call check(all(r32 == [0.5, 0.25, 3.]), "float16 comes back as real32")
  end subroutine arrays_of_every_type

  subroutine sections_and_empty_arrays()
    real(c_float) :: a(6, 4), b(3, 2), none(0, 5)
    integer :: i, stat
    type(c_ptr) :: t
    call begin_case("sections_and_empty_arrays")
    a = reshape([(real(i), i = 1, 24)], shape(a))
    t = mix_tensor_from_array(a(2:6:2, 4:2:-2))
    call mix_tensor_to_array(t, b)
    call check(all(b == a(2:6:2, 4:2:-2)), "a section with strides goes in")
    call mix_tensor_to_array(t, a(1:5:2, 1:3:2))
    call check(all(a(1:5:2, 1:3:2) == b), "and comes out into one")
    call check(all(a(2:6:2, 2) == [8., 10., 12.]), "beside which nothing changes")
    t = mix_tensor_from_array(none, stat=stat)
    call check(stat == MIX_OK .and. has_dims(t, [5, 0]), "an array without elements")
    call mix_tensor_to_array(t, none, stat=stat)
    call check(stat == MIX_OK, "it comes back")
  end subroutine sections_and_empty_arrays

  subroutine wrong_shapes()
    real(c_float) :: a(2, 3), turned(3, 2), flat(6)
    integer :: stat
    character(:), allocatable :: message
    type(c_ptr) :: t
    call begin_case("wrong_shapes")
    a = 1
    turned = 5
    t = mix_tensor_from_array(a)
    call mix_tensor_to_array(t, turned, stat, message)
    call check(stat == MIX_VALUE_ERROR, "the axes are turned")
    call check(message == "mix_tensor_to_array: the array has the shape (3, 2); expected (2, 3), " // &
               "the axes of the tensor (3, 2) in Fortran's order", "the message: " // message)
    call check(all(turned == 5), "the array is as it was")
    call mix_tensor_to_array(t, flat, stat, message)
    call check(stat == MIX_VALUE_ERROR, "another rank")
    t = mix_reshape(t, mix_shape_of([1, 2, 3, 4, 5, 6, 7, 8, 9]), stat, message)
    call check(stat == MIX_VALUE_ERROR .and. index(message, "9 items; expected no more than 8") > 0, message)
  end subroutine wrong_shapes

  subroutine missing_files()
    type(c_ptr) :: model
    integer :: stat
    character(:), allocatable :: message
    call begin_case("missing_files")
    model = mix_model_load("no such file.keras", stat=stat, errmsg=message)
    call check(.not. c_associated(model) .and. stat == MIX_IO_ERROR, "an IOError")
    call check(index(message, "no such file.keras") > 0, "the message names the file: " // message)
    call check(len_trim(message) == len(message) .and. index(message, c_null_char) == 0, "whole and trimmed")
    call check(mix_error() == MIX_OK, "the error is taken")
    message = "as before"
    model = mix_scope_begin(stat, message)
    call check(stat == MIX_OK .and. message == "as before", "a call that succeeds leaves the message")
    call mix_scope_end(model)
  end subroutine missing_files

  subroutine long_messages()
    type(c_ptr) :: model
    integer :: stat
    character(:), allocatable :: message
    call begin_case("long_messages")
    model = mix_model_load(repeat("folder/", 100) // "m.keras", stat=stat, errmsg=message)
    call check(stat == MIX_IO_ERROR, "an IOError")
    call check(index(message, repeat("folder/", 100) // "m.keras") > 0, "all 707 letters of the name")
  end subroutine long_messages

  ! Without stat an error waits, as in C: the calls after it do nothing, and the first one counts.
  subroutine errors_that_wait()
    type(c_ptr) :: layer, list
    integer :: stat
    character(:), allocatable :: message
    call begin_case("errors_that_wait")
    layer = mix_dense(units=-1)
    list = mix_list_of([layer])
    call check(.not. (c_associated(layer) .or. c_associated(list)), "nothing is made")
    call check(mix_error() == MIX_VALUE_ERROR, "the error waits")
    call check(index(mix_error_message(), "units") > 0, "its message: " // mix_error_message())
    call mix_get_error(stat, message)
    call check(stat == MIX_VALUE_ERROR .and. index(message, "units") > 0, "it is taken")
    call mix_get_error(stat)
    call check(stat == MIX_OK .and. mix_error_message() == "", "once")
    call check(mix_status_name(MIX_VALUE_ERROR) == "ValueError", "statuses have names")
  end subroutine errors_that_wait

  subroutine errors_of_the_program()
    integer :: stat
    character(:), allocatable :: message
    call begin_case("errors_of_the_program")
    stat = mix_error_record(MIX_RUNTIME_ERROR, "the solver has stopped  ")
    call check(stat == MIX_RUNTIME_ERROR, "recorded")
    call check(mix_error_record(MIX_VALUE_ERROR, "another") == MIX_RUNTIME_ERROR, "the first counts")
    call mix_get_error(stat, message)
    call check(stat == MIX_RUNTIME_ERROR .and. message == "the solver has stopped", message)
  end subroutine errors_of_the_program

  subroutine texts_are_trimmed()
    character(40) :: name
    character(:), allocatable :: made
    type(c_ptr) :: layer
    integer :: stat
    call begin_case("texts_are_trimmed")
    name = "hidden layer"
    layer = mix_dense(3, "relu   ", name=name)
    call check(mix_layer_name(layer) == "hidden layer", "blanks at the end go, others stay")
    name = "overwritten"
    call check(mix_layer_name(layer) == "hidden layer", "the library has its own copy")
    made = mix_layer_name(mix_dense(3))
    call check(made(1:5) == "dense", "without a name: " // made)
    call mix_set_global_policy("mixed_float16   ", stat)
    call check(stat == MIX_OK .and. mix_policy_name(mix_global_policy()) == "mixed_float16", "a policy")
    call mix_set_global_policy("float32")
    call check(mix_error() == MIX_OK, "no error is left")
  end subroutine texts_are_trimmed

  subroutine texts_in_lists()
    type(c_ptr) :: dict, logs
    call begin_case("texts_in_lists")
    dict = mix_dict_new(2, [character(5) :: "a", "other"], [mix_scalar(1._c_double, MIX_FLOAT32), c_null_ptr])
    call check(mix_dict_name(dict, 0) == "a" .and. mix_dict_name(dict, 1) == "other", "names of a dict")
    call check(mix_tensor_item(mix_dict_get(dict, "a ")) == 1, "an item by name")
    logs = mix_logs_of(2, [character(8) :: "loss", "accuracy"], [0.5_c_double, 0.25_c_double])
    call check(mix_logs_get(logs, "accuracy") == 0.25_c_double, "a number by name")
    call check(mix_error() == MIX_OK, "no error is left")
  end subroutine texts_in_lists

  subroutine too_many_items()
    character(8) :: many(17)
    integer :: stat
    character(:), allocatable :: message
    type(c_ptr) :: model
    call begin_case("too_many_items")
    many = "mae"
    model = small_model()
    call mix_model_compile(model, loss="mse", metrics=many, stat=stat, errmsg=message)
    call check(stat == MIX_VALUE_ERROR, "17 metrics")
    call check(message == "mix_model_compile: metrics has 17 items; expected no more than 16", message)
    call mix_model_compile(model, loss="mse", loss_weights=[(1._c_double, stat = 1, 17)], stat=stat)
    call check(stat == MIX_VALUE_ERROR, "17 weights")
  end subroutine too_many_items

  function small_model() result(model)
    type(c_ptr) :: model
    model = mix_sequential(mix_list_of([mix_dense(8, "tanh", name="hidden"), mix_dense(1, name="out")]))
  end function small_model

  ! What C's macros do: a struct with its size, zeros elsewhere.
  subroutine options_by_hand()
    type(mix_dense_options) :: options
    character(kind=c_char), target :: name(4) = ["b", "y", "t", c_null_char]
    type(c_ptr) :: layer
    integer :: stat
    call begin_case("options_by_hand")
    options%units = 5
    options%name = c_loc(name)
    layer = mix_dense_with(options, stat)
    call check(stat == MIX_OK .and. mix_layer_name(layer) == "byt", "a layer of its options")
    options%size = 3
    layer = mix_dense_with(options, stat)
    call check(stat == MIX_VALUE_ERROR .and. .not. c_associated(layer), "a wrong size is refused")
  end subroutine options_by_hand

  ! y is the sum of four features: rows of C are columns here.
  subroutine make_data(x, y)
    real(c_float), intent(out) :: x(4, 64), y(1, 64)
    integer :: i
    x = reshape([(sin(real(i)), i = 1, size(x))], shape(x))
    y(1, :) = sum(x, dim=1)
  end subroutine make_data

  subroutine training()
    real(c_float) :: x(4, 64), y(1, 64), predicted(1, 64)
    type(c_ptr) :: model, history, logs
    integer :: stat
    real(c_double) :: first, last
    call begin_case("training")
    call make_data(x, y)
    model = small_model()
    call mix_set_seed(1_c_int64_t)
    call mix_model_compile(model, loss="mse", optimizer=mix_adam(learning_rate=0.02_c_double), &
                           metrics=[character(20) :: "mae", "mean_squared_error"], stat=stat)
    call check(stat == MIX_OK, "compile")
    history = mix_model_fit(model, mix_tensor_from_array(x), mix_tensor_from_array(y), 16, epochs=30, &
                            quiet=.true., no_shuffle=.true., stat=stat)
    call check(stat == MIX_OK .and. mix_history_epochs(history) == 30, "fit")
    first = mix_logs_get(mix_history_epoch(history, 0_c_int64_t), "loss")
    last = mix_logs_get(mix_history_epoch(history, 29_c_int64_t), "loss")
    call check(last < first / 4, "the loss falls")
    logs = mix_model_train_on_batch(model, mix_tensor_from_array(x), mix_tensor_from_array(y))
    logs = mix_model_evaluate(model, mix_tensor_from_array(x), mix_tensor_from_array(y), quiet=.true.)
    call mix_tensor_to_array(mix_list_get(mix_model_predict(model, mix_tensor_from_array(x)), 0), predicted)
    call check(mix_error() == MIX_OK, "no error is left: " // mix_error_message())
    ! the same mean of 64 squares, summed in another order in float32
    call check(abs(sum((predicted - y)**2) / 64 - mix_logs_get(logs, "loss")) < 1e-5, "their loss")
    call check(abs(sum(abs(predicted - y)) / 64 - mix_logs_get(logs, "mae")) < 1e-5, "a metric by its name")
  end subroutine training

  subroutine files()
    real(c_float) :: x(4, 64), y(1, 64), before(1, 64), after(1, 64), half(1, 64)
    type(c_ptr) :: model, again, t
    integer :: stat
    call begin_case("files")
    call make_data(x, y)
    t = mix_tensor_from_array(x)
    model = small_model()
    call mix_model_compile(model, loss="mse", optimizer_name="sgd")
    t = mix_model_fit(model, mix_tensor_from_array(x), mix_tensor_from_array(y), quiet=.true.)
    call check(mix_model_loss_scale(model) == 1, "float32 does not scale its loss")
    call mix_tensor_to_array(mix_list_get(mix_model_predict(model, mix_tensor_from_array(x)), 0), before)
    call mix_model_save(model, "fortran.keras", stat=stat)
    call check(stat == MIX_OK, "save: " // mix_error_message())
    call mix_model_save(model, "fortran.keras", no_overwrite=.true., stat=stat)
    call check(stat == MIX_IO_ERROR, "no_overwrite")
    again = mix_model_load("fortran.keras", stat=stat)
    call check(stat == MIX_OK, "load")
    call mix_tensor_to_array(mix_list_get(mix_model_predict(again, mix_tensor_from_array(x)), 0), after)
    call check(all(after == before), "the same predictions")
    again = mix_model_load("fortran.keras", policy="mixed_float16")
    call mix_model_compile(again, loss="mse", optimizer=mix_sgd(learning_rate=0.01_c_double))
    call check(mix_model_loss_scale(again) == 32768, "mixed_float16 scales its loss")
    call mix_tensor_to_array(mix_list_get(mix_model_predict(again, mix_tensor_from_array(x)), 0), half)
    ! Weights and inputs are below 1 and rounded by 2**(-11): 6.5 * 2**(-10) for 4 products, their sum and
    ! tanh, of which 8 are summed with as many roundings again.
    call check(maxval(abs(half - before)) < 64 * 2.**(-10) .and. any(half /= before), "float16 is near")
    call check(mix_error() == MIX_OK, "no error is left: " // mix_error_message())
  end subroutine files

  function new_trainee() result(model)
    type(c_ptr) :: model
    model = small_model()
    call mix_model_build(model, mix_shape_of([MIX_UNKNOWN, 4]))
    call mix_model_compile(model, loss="mse", optimizer=mix_adam(learning_rate=0.02_c_double))
  end function new_trainee

  real(c_double) function train_once(model, x, y)
    type(c_ptr), intent(in) :: model
    real(c_float), intent(in) :: x(4, 64), y(1, 64)
    train_once = mix_logs_get(mix_model_train_on_batch(model, mix_tensor_from_array(x), &
                                                       mix_tensor_from_array(y)), "loss")
  end function train_once

  ! The library's state beside a field in a file of the program's own, as docs/manual/fortran.md has it.
  subroutine restart_files()
    real(c_float) :: x(4, 64), y(1, 64)
    real(c_double) :: losses(4), again(4)
    integer(c_int64_t) :: step, bytes
    integer :: i, unit, stat
    type(c_ptr) :: model, checkpoint, state
    character(kind=c_char), pointer :: letters(:)
    character(kind=c_char), allocatable, target :: saved(:)
    call begin_case("restart_files")
    call make_data(x, y)
    model = new_trainee()
    checkpoint = mix_checkpoint_new(model=model, stat=stat)
    call check(stat == MIX_OK, "a checkpoint without a folder")
    losses = [(train_once(model, x, y), i = 1, 4)]
    state = mix_checkpoint_to_memory(checkpoint, 4_c_int64_t, c_null_ptr, stat)
    call check(stat == MIX_OK, "to memory")
    bytes = mix_shape_size(mix_tensor_shape(state))
    call c_f_pointer(mix_tensor_data(state), letters, [bytes])
    open (newunit=unit, file="restart", form="unformatted", access="stream", status="replace")
    write (unit) x, bytes, letters
    close (unit)
    losses = [(train_once(model, x, y), i = 1, 4)]
    model = new_trainee() ! with other weights
    checkpoint = mix_checkpoint_new(model=model)
    open (newunit=unit, file="restart", form="unformatted", access="stream", status="old")
    x = 0
    read (unit) x, bytes
    allocate (saved(bytes))
    read (unit) saved
    close (unit, status="delete")
    step = mix_checkpoint_from_memory(checkpoint, c_loc(saved), int(bytes, c_size_t), c_null_ptr)
    call check(step == 4, "from memory")
    again = [(train_once(model, x, y), i = 1, 4)]
    call check(all(again == losses) .and. losses(4) /= losses(1), "the same bits")
    step = mix_checkpoint_from_memory(checkpoint, c_loc(saved), int(bytes - 1, c_size_t), c_null_ptr)
    call mix_get_error(stat)
    call check(step == -1 .and. stat == MIX_FORMAT_ERROR, "bytes that are cut short")
    call check(mix_error() == MIX_OK, "no error is left: " // mix_error_message())
  end subroutine restart_files

  subroutine callbacks()
    real(c_float) :: x(4, 64), y(1, 64)
    integer, target :: count
    type(c_ptr) :: model, history
    type(c_funptr) :: hook
    call begin_case("callbacks")
    hook = c_funloc(count_step)
    call make_data(x, y)
    count = 0
    model = small_model()
    call mix_model_compile(model, loss="mse")
    history = mix_model_fit(model, mix_tensor_from_array(x), mix_tensor_from_array(y), 16, epochs=2, &
                            quiet=.true., on_step=hook, context=c_loc(count))
    steps_seen = count
    call check(steps_seen == 8, "a procedure of Fortran sees every step")
    call check(mix_error() == MIX_OK, "no error is left: " // mix_error_message())
  end subroutine callbacks

  subroutine wrong_objects()
    type(c_ptr) :: model, logs
    real(c_float) :: a(2)
    integer :: stat
    character(:), allocatable :: message
    call begin_case("wrong_objects")
    model = mix_model_fit(c_null_ptr, c_null_ptr, c_null_ptr, stat=stat, errmsg=message)
    call check(stat == MIX_TYPE_ERROR, "no model: " // message)
    logs = mix_model_train_on_batch(mix_dense(2), c_null_ptr, c_null_ptr, stat, message)
    call check(stat == MIX_TYPE_ERROR, "a layer is no model: " // message)
    a = 3
    call mix_tensor_to_array(c_null_ptr, a, stat, message)
    call check(stat == MIX_TYPE_ERROR .and. all(a == 3), "no tensor: " // message)
    call mix_tensor_to_array(mix_dense(2), a, stat, message)
    call check(stat == MIX_TYPE_ERROR .and. all(a == 3), "a layer is no tensor: " // message)
    model = mix_distribution_mpi_of(0, flavor="lam", stat=stat, errmsg=message)
    if (index(mix_parts_left_out(), "mpi") > 0) then
      call check(stat /= MIX_OK .and. index(message, "-DMIXTAPE_MPI=ON") > 0, "no MPI: " // message)
    else
      call check(stat == MIX_VALUE_ERROR .and. index(message, "lam") > 0, "an unknown MPI: " // message)
    end if
  end subroutine wrong_objects

  subroutine scopes_end()
    type(c_ptr) :: inner, kept
    call begin_case("scopes_end")
    inner = mix_scope_begin()
    kept = mix_retain(mix_scalar(2._c_double, MIX_FLOAT32))
    call mix_scope_end(inner)
    call check(mix_tensor_item(kept) == 2, "what is retained stays")
    call mix_release(kept)
    call mix_scope_end(scope)
    call mix_shutdown()
    call check(mix_error() == MIX_OK, "no error is left: " // mix_error_message())
  end subroutine scopes_end
end program calls
