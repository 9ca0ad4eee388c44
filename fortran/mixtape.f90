! What a program uses: all of mixtape_calls, and procedures for what C does by macros.
module mixtape
  use mixtape_calls
  use mixtape_shapes, only: mix_shape_of, mix_axes_of
  use mixtape_support, only: take_message, take_error
  implicit none
  public
  private :: take_message, take_error

contains

  ! The pending error, which it clears: MIX_OK and an unchanged message if there is none.
  subroutine mix_get_error(stat, errmsg)
    integer(c_int), intent(out) :: stat
    character(:), allocatable, intent(inout), optional :: errmsg
    if (present(errmsg)) call take_message(errmsg)
    call take_error(stat, .true.)
  end subroutine mix_get_error

  ! A list of objects: mix_list_of([first, second]).
  function mix_list_of(items, stat, errmsg) result(list)
    type(c_ptr), intent(in) :: items(:)
    integer(c_int), intent(out), optional :: stat
    character(:), allocatable, intent(inout), optional :: errmsg
    type(c_ptr) :: list
    list = mix_list_new(size(items), items)
    if (present(errmsg)) call take_message(errmsg)
    call take_error(stat, present(errmsg))
  end function mix_list_of

  ! The processes of an MPI communicator of the program's own: of mpi_f08 communicator%MPI_VAL, of the module
  ! mpi the communicator itself. Rules: mix_distribution_mpi_from of mixtape/distribute.h.
  function mix_distribution_mpi_of(communicator, flavor, stat, errmsg) result(distribution)
    integer, intent(in) :: communicator
    character(*), intent(in), optional :: flavor
    integer(c_int), intent(out), optional :: stat
    character(:), allocatable, intent(inout), optional :: errmsg
    type(c_ptr) :: distribution
    distribution = mix_distribution_mpi_from(communicator, flavor)
    if (present(errmsg)) call take_message(errmsg)
    call take_error(stat, present(errmsg))
  end function mix_distribution_mpi_of

  ! The loss scale in force: 1 for a model that is not compiled or does not scale its loss.
  function mix_model_loss_scale(model) result(scale)
    type(c_ptr), intent(in) :: model
    real(c_double) :: scale
    type(c_ptr) :: tensor
    scale = 1
    tensor = mix_model_optimizer(model)
    if (c_associated(tensor)) tensor = mix_optimizer_loss_scale(tensor)
    if (c_associated(tensor)) scale = mix_tensor_item(tensor)
  end function mix_model_loss_scale
end module mixtape
