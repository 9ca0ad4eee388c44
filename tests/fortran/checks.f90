! Test cases that print what cmocka prints, so that scripts/counting counts them.
module checks
  implicit none
  private
  public :: begin_case, check, end_cases
  character(:), allocatable :: name
  logical :: is_good = .true.
  integer :: passed = 0, failed = 0

contains

  subroutine begin_case(title)
    character(*), intent(in) :: title
    call end_case()
    name = title
    is_good = .true.
  end subroutine begin_case

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) print "(5a)", "[  ERROR   ] --- ", name, ": not so: ", what
    is_good = is_good .and. holds
  end subroutine check

  subroutine end_case()
    if (.not. allocated(name)) return
    if (is_good) then
      print "(2a)", "[       OK ] ", name
      passed = passed + 1
    else
      failed = failed + 1
    end if
    deallocate (name)
  end subroutine end_case

  ! Ends the program with 1 if a case failed, or if there were not as many as there are.
  subroutine end_cases(expected)
    integer, intent(in) :: expected
    call end_case()
    if (failed > 0) print "(a, i0, a)", "[  FAILED  ] ", failed, " test(s)"
    if (failed > 0 .or. passed /= expected) error stop 1
  end subroutine end_cases
end module checks
