! Training inside a Fortran program, on an MPI communicator of its own: while the ranks integrate pendulums, a
! network learns what twenty steps of the integration do.
!
!   mpirun -n 2 17_fortran START.keras END.keras
!
! START.keras is any model of Keras with two inputs and two outputs; if there is none, one of Keras 3 is made.
! It trains under mixed_float16 on the states of all ranks and goes to END.keras, which that Keras loads.
program pendulums
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  use mixtape
  implicit none
  integer, parameter :: rows = 64, steps = 150
  ! (features, rows) is (rows, features) in C
  real(c_float) :: before(2, rows), after(2, rows), predicted(2, rows)
  type(c_ptr) :: scope, model
  integer :: rank, level, stat, step
  real(c_double) :: loss
  character(:), allocatable :: message
  character(256) :: start, end

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, level)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call get_command_argument(1, start)
  call get_command_argument(2, end)
  if (end == "") call give_up("usage: 17_fortran START.keras END.keras")

  scope = mix_scope_begin()
  call mix_set_distribution(mix_distribution_mpi_of(MPI_COMM_WORLD%MPI_VAL), stat, message)
  call check(stat)
  if (rank == 0) call make_missing(start)
  call MPI_Barrier(MPI_COMM_WORLD)
  model = mix_model_load(start, policy="mixed_float16", stat=stat, errmsg=message)
  call check(stat)
  call mix_model_compile(model, loss="mse", optimizer=mix_adam(learning_rate=0.01_c_double), stat=stat, &
                         errmsg=message)
  call check(stat)

  call begin_states(before)
  do step = 1, steps
    call integrate(before, after)
    loss = train(before, after)
    if (rank == 0 .and. (step == 1 .or. step == steps)) print "(a, i0, a, f8.5)", "step ", step, &
      ": loss ", loss
    before = after
  end do

  call integrate(before, after)
  call mix_tensor_to_array(mix_list_get(mix_model_predict(model, mix_tensor_from_array(before)), 0), &
                           predicted, stat, message)
  call check(stat)
  if (rank == 0) then
    print "(a, f7.0)", "loss scale ", mix_model_loss_scale(model)
    print "(a, f7.4, a, f7.4)", "largest error ", maxval(abs(predicted - after)), " of ", maxval(abs(after))
    call mix_model_save(model, end, stat=stat, errmsg=message)
    call check(stat)
  end if
  call mix_set_distribution(c_null_ptr)
  call mix_scope_end(scope) ! before MPI_Finalize
  call MPI_Finalize()

contains

  ! Angles and velocities, other ones on each rank.
  subroutine begin_states(states)
    real(c_float), intent(out) :: states(2, rows)
    integer :: i
    do i = 1, rows
      states(:, i) = [sin(real(i + rows*rank)), cos(2.5 * real(i + rows*rank))]
    end do
  end subroutine begin_states

  subroutine integrate(from, to)
    real(c_float), intent(in) :: from(2, rows)
    real(c_float), intent(out) :: to(2, rows)
    integer :: i
    to = from
    do i = 1, 20
      to(2, :) = to(2, :) - 0.02 * sin(to(1, :))
      to(1, :) = to(1, :) + 0.02 * to(2, :)
    end do
  end subroutine integrate

  ! One step on the rows of all ranks together. The scope releases the tensors of this step.
  real(c_double) function train(x, y)
    real(c_float), intent(in) :: x(2, rows), y(2, rows)
    type(mix_on_batch_options) :: batch
    type(c_ptr) :: step_scope, logs
    step_scope = mix_scope_begin()
    batch%x = mix_tensor_from_array(x)
    batch%y = mix_tensor_from_array(y)
    batch%rows = MIX_LOCAL
    logs = mix_model_train_on_batch_with(model, batch, stat, message)
    call check(stat)
    train = mix_logs_get(logs, "loss")
    call mix_scope_end(step_scope)
  end function train

  subroutine make_missing(path)
    character(*), intent(in) :: path
    logical :: is_there
    type(c_ptr) :: new
    inquire (file=path, exist=is_there)
    if (is_there) return
    call mix_set_seed(7_c_int64_t)
    call mix_set_semantics("keras3")
    new = mix_sequential(mix_list_of([mix_dense(32, "tanh"), mix_dense(2)]))
    call mix_model_build(new, mix_shape_of([MIX_UNKNOWN, 2]))
    call mix_model_save(new, path, stat=stat, errmsg=message)
    call check(stat)
  end subroutine make_missing

  subroutine check(status)
    integer, intent(in) :: status
    if (status /= MIX_OK) call give_up(mix_status_name(status) // ": " // message)
  end subroutine check

  subroutine give_up(why)
    character(*), intent(in) :: why
    write (error_unit, "(a, i0, 2a)") "rank ", rank, ": ", why
    flush (error_unit)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine give_up
end program pendulums
